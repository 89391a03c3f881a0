import { readApiKey } from "../../../store/reads/keys.ts";
import { noFields } from "../../input/no-fields.ts";
import { apiKeySchema, presentApiKey } from "../../present/api-key.ts";
import { defineRoute } from "../../route.ts";
import { getKeyId, KEEPERS, keyParams, noSuchKey } from "./key-ref.ts";

export const getApiKeyRoute = defineRoute({
  method: "get",
  path: "/v1/api-keys/{key}",
  tag: "api-keys",
  summary: "Show one API key, without its secret",
  roles: KEEPERS,
  params: keyParams,
  query: noFields,
  answer: { kind: "ok", description: "The key as it stands", schema: apiKeySchema },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const key = await readApiKey(context.db, caller.tenantId, getKeyId(params.key));
    if (key === undefined) throw noSuchKey(params.key);
    return { kind: "ok", body: presentApiKey(key, context.clock.now()) };
  },
});

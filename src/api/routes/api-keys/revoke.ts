import { z } from "zod";
import { revokeApiKey } from "../../../authority/tenants/revoke-api-key.ts";
import { noFields } from "../../input/no-fields.ts";
import { apiKeySchema, presentApiKey } from "../../present/api-key.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS, keyParams, keyToChange, noSuchKey } from "./key-ref.ts";

export const revokeApiKeyRoute = defineRoute({
  method: "delete",
  path: "/v1/api-keys/{key}",
  tag: "api-keys",
  summary: "Revoke an API key",
  description:
    "It works nowhere any more after 5 seconds. What it made stays, and goes on. Revoking a revoked key changes nothing.",
  roles: KEEPERS,
  params: keyParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "The revoked key",
    schema: z.strictObject({ apiKey: apiKeySchema, changed: z.boolean() }),
  },
  problems: ["not-found", "last-admin-key"],
  async handle({ params }, context, caller) {
    const { id: keyId } = await keyToChange(context, caller, params.key);
    const { tenantId, actor } = caller;
    const outcome = await revokeApiKey(context.authority, { tenantId, actor, keyId });
    if (outcome.kind === "not-found") throw noSuchKey(params.key);
    if (outcome.kind === "last-admin") {
      throw new Problem(
        "last-admin-key",
        "No other admin key is live and meant to stay: nobody could make keys any more",
      );
    }
    const apiKey = presentApiKey(outcome.key, context.clock.now());
    return { kind: "ok", body: { apiKey, changed: outcome.kind === "revoked" } };
  },
});

import { z } from "zod";
import { listApiKeys } from "../../../store/reads/keys.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { apiKeySchema, presentApiKey } from "../../present/api-key.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS } from "./key-ref.ts";

export const listApiKeysRoute = defineRoute({
  method: "get",
  path: "/v1/api-keys",
  tag: "api-keys",
  summary: "List the tenant's API keys, newest first, also those that are over",
  roles: KEEPERS,
  params: noFields,
  query: z.strictObject({ limit: limitSchema, after: afterSchema }),
  answer: pageAnswer(apiKeySchema),
  problems: ["invalid-cursor"],
  async handle({ query }, context, caller) {
    const { limit } = query;
    const list = JSON.stringify(["api-keys", caller.tenantId]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const rows = await listApiKeys(context.db, caller.tenantId, {
      limit: limit + 1,
      ...(afterId === undefined ? {} : { afterId }),
    });
    const nowAt = context.clock.now();
    return replyWithPage(context, list, {
      rows,
      limit,
      positionOf: (row) => row.id,
      present: (row) => presentApiKey(row, nowAt),
    });
  },
});

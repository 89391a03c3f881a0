import { z } from "zod";
import { listSigningKeys } from "../../../store/reads/tenants/signing-keys.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { presentSigningKey, signingKeySchema } from "../../present/webhooks/signing-key.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS } from "../api-keys/key-ref.ts";

export const listSigningKeysRoute = defineRoute({
  method: "get",
  path: "/v1/signing-keys",
  tag: "signing-keys",
  summary: "List the tenant's signing keys, newest first, also those that are over",
  roles: KEEPERS,
  params: noFields,
  query: z.strictObject({ limit: limitSchema, after: afterSchema }),
  answer: pageAnswer(signingKeySchema),
  problems: ["invalid-cursor"],
  async handle({ query }, context, caller) {
    const { limit } = query;
    const list = JSON.stringify(["signing-keys", caller.tenantId]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const page = { limit: limit + 1, ...(afterId === undefined ? {} : { afterId }) };
    const rows = await listSigningKeys(context.db, caller.tenantId, page);
    const nowAt = context.clock.now();
    return replyWithPage(context, list, {
      rows,
      limit,
      positionOf: (row) => row.id,
      present: (row) => presentSigningKey(row, nowAt),
    });
  },
});

import { z } from "zod";
import { setQuota } from "../../../authority/tenants/set-quota.ts";
import { CLASSES } from "../../../domain/definition.ts";
import { showId } from "../../../kernel/ids.ts";
import { CLASS_QUOTA_BODY } from "../../examples/quotas.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { noFields } from "../../input/no-fields.ts";
import { classQuotaFields, classQuotaSchema, DEFAULT_CLASS_QUOTA, presentClassQuota } from "../../present/quotas.ts";
import { defineRoute } from "../../route.ts";
import { expectedVersionSchema, ifMatchVersion, quotaConflict, readExpectedVersion } from "./expected.ts";

const f = classQuotaFields;
const d = DEFAULT_CLASS_QUOTA;

export const putClassQuotaRoute = defineRoute({
  method: "put",
  path: "/v1/quotas/{class}",
  tag: "quotas",
  summary: "Set what the tenant may use of a class",
  description:
    "Fields left out go back to their defaults. It holds from the next start on: attempts above a lowered limit run to their end.",
  roles: ["admin"],
  params: z.strictObject({ class: z.enum(CLASSES) }),
  query: noFields,
  headers: ifMatchVersion,
  body: z.strictObject({
    maxRunning: f.maxRunning.default(d.maxRunning),
    startRatePerSecond: f.startRatePerSecond.default(d.startRatePerSecond),
    weight: f.weight.default(d.weight),
    onInfeasible: f.onInfeasible.default(d.onInfeasible),
    expectedVersion: expectedVersionSchema,
  }),
  example: CLASS_QUOTA_BODY,
  answer: { kind: "ok", description: "The class's quota from now on", schema: classQuotaSchema },
  problems: ["quota-conflict"],
  async handle(call, context, { tenantId, actor }) {
    const { expectedVersion: inBody, ...quota } = call.body;
    const expectedVersion = readExpectedVersion(call.header("if-match"), inBody);
    const class_ = call.params.class;
    const outcome = await setQuota(context.authority, { tenantId, actor, class: class_, quota, expectedVersion });
    switch (outcome.kind) {
      case "set": {
        const body = presentClassQuota({ ...quota, version: outcome.version });
        return { kind: "ok", headers: { etag: `"${body.version}"` }, body };
      }
      case "conflict": {
        const { current } = outcome;
        throw quotaConflict(expectedVersion, current === undefined ? null : presentClassQuota(current));
      }
      case "no-tenant":
        throw noSuchTenant(showId("ten", tenantId));
    }
  },
});

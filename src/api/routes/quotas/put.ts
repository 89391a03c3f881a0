import { z } from "zod";
import { setTenantQuotas } from "../../../authority/tenants/set-tenant-quotas.ts";
import { DEFAULT_QUOTAS } from "../../../domain/quotas/tenant.ts";
import { showId } from "../../../kernel/ids.ts";
import { QUOTAS_BODY } from "../../examples/quotas.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentTenantQuotas, tenantQuotaFields, tenantQuotasSchema } from "../../present/quotas.ts";
import { defineRoute } from "../../route.ts";
import { expectedVersionSchema, ifMatchVersion, quotaConflict, readExpectedVersion } from "./expected.ts";

const f = tenantQuotaFields;
const d = DEFAULT_QUOTAS;

export const putQuotasRoute = defineRoute({
  method: "put",
  path: "/v1/quotas",
  tag: "quotas",
  summary: "Set what the tenant may have",
  description:
    "Fields left out go back to their defaults. What there is already stays, above a lowered limit too: only new ones are refused. Rates hold at once where they were set, within 5 s elsewhere.",
  roles: ["admin"],
  params: noFields,
  query: noFields,
  headers: ifMatchVersion,
  body: z.strictObject({
    schedules: f.schedules.default(d.schedules),
    minIntervalMs: f.minIntervalMs.default(d.minIntervalMs),
    payloadBytes: f.payloadBytes.default(d.payloadBytes),
    queuedRuns: f.queuedRuns.default(d.queuedRuns),
    requestedRunsPerDay: f.requestedRunsPerDay.default(d.requestedRunsPerDay),
    apiRatePerSecond: f.apiRatePerSecond.default(d.apiRatePerSecond),
    apiBurst: f.apiBurst.default(d.apiBurst),
    expectedVersion: expectedVersionSchema,
  }),
  example: QUOTAS_BODY,
  answer: { kind: "ok", description: "The quotas in force from now on", schema: tenantQuotasSchema },
  problems: ["quota-conflict"],
  async handle(call, context, { tenantId, actor }) {
    const { expectedVersion: inBody, ...quotas } = call.body;
    const expectedVersion = readExpectedVersion(call.header("if-match"), inBody);
    const outcome = await setTenantQuotas(context.authority, { tenantId, actor, expectedVersion, quotas });
    switch (outcome.kind) {
      case "set": {
        context.limits?.rates.forget(tenantId);
        const body = presentTenantQuotas(outcome.quotas);
        return { kind: "ok", headers: { etag: `"${body.version}"` }, body };
      }
      case "conflict": {
        const { current } = outcome;
        throw quotaConflict(expectedVersion, current === undefined ? null : presentTenantQuotas(current));
      }
      case "no-tenant":
        throw noSuchTenant(showId("ten", tenantId));
    }
  },
});

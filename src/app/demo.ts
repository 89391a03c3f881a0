import { mintKey } from "../api/keys.ts";
import { runNow } from "../authority/runs/run-now.ts";
import { createSchedule } from "../authority/schedules/create-schedule.ts";
import { createApiKey } from "../authority/tenants/create-api-key.ts";
import { createTenant } from "../authority/tenants/create-tenant.ts";
import { type Definition, definitionSchema, type Payload } from "../domain/definition.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { Core } from "./core.ts";
import { findSecret, keepSecret } from "./secret.ts";

const EVERY_MINUTE = {
  key: "run-summary",
  name: "Run summary, every minute",
  rule: { kind: "cron", expression: "* * * * *", zone: "Etc/UTC" },
  payload: { period: "last-hour", title: "The last hour" },
};
/** The example the product began with: weekdays at nine in New York. */
const WEEKDAYS = {
  key: "sales-report",
  name: "Sales report, weekdays 09:00 New York",
  rule: { kind: "cron", expression: "0 9 * * 1-5", zone: "America/New_York" },
  payload: { period: "last-day", zone: "America/New_York", title: "Sales report" },
};

/** Makes the demo tenant with its key and two schedules, on the first start only. Answers the key. */
export async function prepareDemo(core: Core): Promise<{ key: string; tenantId: Uuid }> {
  const { authority, config } = core;
  const { tenantId } = await createTenant(authority, { name: "demo" });
  const known = findSecret(config.PUNCTUAL_DIR, "key");
  const key = known ?? (await makeKey(core, tenantId));
  for (const one of [EVERY_MINUTE, WEEKDAYS]) {
    const made = await createSchedule(authority, {
      tenantId,
      actor: "demo",
      key: one.key,
      name: one.name,
      labels: { demo: "yes" },
      definition: definitionOf(one.rule),
      payload: one.payload as Payload,
    });
    // Something to look at within seconds, and for the first report of the minute to tell of.
    if (made.kind === "created") await runNow(authority, { tenantId, actor: "demo", scheduleId: made.schedule.id });
  }
  return { key, tenantId };
}

async function makeKey(core: Core, tenantId: Uuid): Promise<string> {
  const minted = mintKey();
  const { prefix, secretHash } = minted;
  await createApiKey(core.authority, { tenantId, prefix, secretHash, role: "admin", label: "demo" });
  return keepSecret(core.config.PUNCTUAL_DIR, "key", () => minted.key);
}

function definitionOf(rule: unknown): Definition {
  return definitionSchema.parse({ rule, job: { kind: "function", name: "report.run-summary", version: 1 } });
}

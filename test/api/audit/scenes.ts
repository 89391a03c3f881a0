import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { mintId, readId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { giveUp } from "../letters.ts";
import { type Answer, REPORT, type TestServer } from "../server.ts";

/** For each call that changes something: what has to be there before, and the call itself. */

export type Stage = {
  server: TestServer;
  tenantId: string;
  /** Sends as the scene's caller. */
  send(method: string, path: string, body?: unknown): Promise<Answer>;
};
/** Prepares, and answers where the call goes (the path with its parameters filled in) and what it sends. */
type Scene = (stage: Stage) => Promise<{ path: string; body?: unknown }>;

const DAY = 86_400_000;
const YEARLY = { name: "Yearly", rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" }, job: REPORT };

async function schedule({ send }: Stage): Promise<string> {
  const made = await send("POST", "/v1/schedules", YEARLY);
  return `/v1/schedules/${String(made.body.scheduleId)}`;
}

async function run({ send }: Stage, effects: object[] = []): Promise<string> {
  const made = await send("POST", "/v1/runs", { job: REPORT, ...(effects.length === 0 ? {} : { effects }) });
  return String(made.body.runId);
}

async function letter(stage: Stage): Promise<string> {
  const id = await run(stage);
  await giveUp(stage.server, id);
  return id;
}

const ROW = sql("test_row_of_run", "select id from outbox where runs @> array[$1::uuid]");

async function effect(stage: Stage): Promise<string> {
  const hook = { name: "hook", kind: "webhook", url: "https://hooks.example.com/x" };
  const shown = await run(stage, [hook]);
  const runId = readId("run", shown)!;
  const [row] = await stage.server.db.query<{ id: bigint }>(ROW, [runId]);
  const hints = [{ rowId: row!.id, epoch: 1 }];
  const claim = { claimId: mintId(Date.now(), 0), worker: "w", slots: { short: 1 }, hints, repeated: false };
  const { grants } = await claimRuns(stage.server.authority, claim);
  await completeRuns(stage.server.authority, [{ runId, fence: grants[0]!.fence, output: null }]);
  const effects = (await stage.send("GET", `/v1/runs/${shown}`)).body.effects as { effectId: string }[];
  return effects[0]!.effectId;
}

async function operation(stage: Stage): Promise<string> {
  await letter(stage);
  const began = await stage.send("POST", "/v1/dead-letters/dismiss", { filter: {}, dryRun: false });
  return (began.body.operation as { operationId: string }).operationId;
}

async function apiKey({ send }: Stage): Promise<string> {
  const made = await send("POST", "/v1/api-keys", { label: "CI", role: "operator" });
  return `/v1/api-keys/${(made.body.apiKey as { keyId: string }).keyId}`;
}

async function signingKey({ send }: Stage): Promise<string> {
  const made = await send("POST", "/v1/signing-keys", { label: "hooks" });
  return `/v1/signing-keys/${(made.body.signingKey as { keyId: string }).keyId}`;
}

const SETTLE = sql(
  "test_settle_delivery",
  "update webhook_delivery set state = 'failed', settled_at = clock_timestamp() where id = $1",
);

async function webhook({ send }: Stage): Promise<string> {
  const made = await send("POST", "/v1/webhooks", { url: "https://hooks.example.com/x", events: ["run.failed"] });
  return `/v1/webhooks/${String(made.body.webhookId)}`;
}

export const SCENES: Readonly<Record<string, Scene>> = {
  "POST /v1/schedules": async () => ({ path: "/v1/schedules", body: YEARLY }),
  "PUT /v1/schedules/{schedule}": async (stage) => ({
    path: await schedule(stage),
    body: { ...YEARLY, name: "Once a year", expectedRevision: 1 },
  }),
  "PATCH /v1/schedules/{schedule}": async (stage) => ({
    path: await schedule(stage),
    body: { notes: "with notes", expectedRevision: 1 },
  }),
  "DELETE /v1/schedules/{schedule}": async (stage) => ({ path: await schedule(stage) }),
  "POST /v1/schedules/{schedule}/pause": async (stage) => ({ path: `${await schedule(stage)}/pause`, body: {} }),
  "POST /v1/schedules/{schedule}/resume": async (stage) => {
    const path = await schedule(stage);
    await stage.send("POST", `${path}/pause`, {});
    return { path: `${path}/resume`, body: {} };
  },
  "POST /v1/schedules/{schedule}/runs": async (stage) => ({ path: `${await schedule(stage)}/runs`, body: {} }),
  "POST /v1/schedules/{schedule}/backfill": async (stage) => {
    const to = Math.floor(Date.now() / DAY) * DAY;
    const period = { from: new Date(to - DAY).toISOString(), to: new Date(to).toISOString() };
    return { path: `${await schedule(stage)}/backfill`, body: { ...period, dryRun: false } };
  },
  "PUT /v1/calendars/{calendar}": async () => ({ path: "/v1/calendars/fresh", body: { weekend: [] } }),
  "DELETE /v1/calendars/{calendar}": async ({ send }) => {
    await send("PUT", "/v1/calendars/stale", { weekend: [] });
    return { path: "/v1/calendars/stale" };
  },
  "POST /v1/runs": async () => ({ path: "/v1/runs", body: { job: REPORT } }),
  "POST /v1/runs/{run}/cancel": async (stage) => ({ path: `/v1/runs/${await run(stage)}/cancel`, body: {} }),
  "POST /v1/effects/{effect}/resolve": async (stage) => ({
    path: `/v1/effects/${await effect(stage)}/resolve`,
    body: { outcome: "drop", reason: "not needed" },
  }),
  "POST /v1/dead-letters/{run}/replay": async (stage) => ({
    path: `/v1/dead-letters/${await letter(stage)}/replay`,
    body: {},
  }),
  "POST /v1/dead-letters/{run}/dismiss": async (stage) => ({
    path: `/v1/dead-letters/${await letter(stage)}/dismiss`,
    body: {},
  }),
  "POST /v1/dead-letters/replay": async (stage) => {
    await letter(stage);
    return { path: "/v1/dead-letters/replay", body: { filter: {}, dryRun: false } };
  },
  "POST /v1/dead-letters/dismiss": async (stage) => {
    await letter(stage);
    return { path: "/v1/dead-letters/dismiss", body: { filter: {}, dryRun: false } };
  },
  "POST /v1/operations/{operation}/cancel": async (stage) => ({
    path: `/v1/operations/${await operation(stage)}/cancel`,
    body: {},
  }),
  "PUT /v1/quotas": async () => ({ path: "/v1/quotas", body: { schedules: 100 } }),
  "PUT /v1/quotas/{class}": async () => ({ path: "/v1/quotas/long", body: { maxRunning: 10 } }),
  "POST /v1/api-keys": async () => ({ path: "/v1/api-keys", body: { label: "CI", role: "operator" } }),
  "POST /v1/api-keys/{key}/rotate": async (stage) => ({ path: `${await apiKey(stage)}/rotate`, body: {} }),
  "DELETE /v1/api-keys/{key}": async (stage) => ({ path: await apiKey(stage) }),
  "PUT /v1/email-templates/{template}": async () => ({
    path: "/v1/email-templates/fresh",
    body: { subject: "s", text: "t" },
  }),
  "DELETE /v1/email-templates/{template}": async ({ send }) => {
    await send("PUT", "/v1/email-templates/stale", { subject: "s", text: "t" });
    return { path: "/v1/email-templates/stale" };
  },
  "POST /v1/webhooks": async () => ({
    path: "/v1/webhooks",
    body: { url: "https://hooks.example.com/x", events: ["run.failed"] },
  }),
  "PATCH /v1/webhooks/{webhook}": async (stage) => ({ path: await webhook(stage), body: { events: ["run.late"] } }),
  "DELETE /v1/webhooks/{webhook}": async (stage) => ({ path: await webhook(stage) }),
  "POST /v1/webhooks/{webhook}/disable": async (stage) => ({ path: `${await webhook(stage)}/disable`, body: {} }),
  "POST /v1/webhooks/{webhook}/enable": async (stage) => {
    const path = await webhook(stage);
    await stage.send("POST", `${path}/disable`, {});
    return { path: `${path}/enable`, body: {} };
  },
  "POST /v1/webhooks/{webhook}/test": async (stage) => ({ path: `${await webhook(stage)}/test`, body: {} }),
  "POST /v1/webhooks/{webhook}/deliveries/{delivery}/redeliver": async (stage) => {
    const path = await webhook(stage);
    const { deliveryId } = (await stage.send("POST", `${path}/test`, {})).body;
    await stage.server.db.query(SETTLE, [deliveryId]);
    return { path: `${path}/deliveries/${String(deliveryId)}/redeliver`, body: {} };
  },
  "POST /v1/signing-keys": async () => ({ path: "/v1/signing-keys", body: { label: "hooks" } }),
  "POST /v1/signing-keys/{signingKey}/rotate": async (stage) => ({
    path: `${await signingKey(stage)}/rotate`,
    body: {},
  }),
  "DELETE /v1/signing-keys/{signingKey}": async (stage) => ({ path: await signingKey(stage) }),
  "POST /v1/tenants": async () => ({ path: "/v1/tenants", body: { name: "a new one" } }),
  "PATCH /v1/tenants/{tenant}": async ({ send }) => {
    const made = await send("POST", "/v1/tenants", { name: "a changed one" });
    return { path: `/v1/tenants/${String(made.body.tenantId)}`, body: { status: "suspended" } };
  },
};

/** Calls that write nothing durable, for all their method, and why. */
export const WRITING_NOTHING: Readonly<Record<string, string>> = {
  "POST /v1/schedules/preview": "a question",
  "POST /v1/schedules/{schedule}/preview": "a question",
  "POST /v1/session": "a signed cookie, of which nothing is kept",
  "DELETE /v1/session": "the browser forgets its cookie",
  "POST /v1/worker/poll": "a question",
  "POST /v1/worker/claim": "the run's history",
  "POST /v1/worker/heartbeat": "a lease",
  "POST /v1/worker/progress": "the attempt",
  "POST /v1/worker/log": "the attempt's log",
  "POST /v1/worker/upload": "the run's objects",
  "POST /v1/worker/stage": "the run's objects",
  "PUT /v1/worker/stage": "the run's objects",
  "POST /v1/worker/release": "the run's history",
  "POST /v1/worker/detach": "the run's history",
  "POST /v1/worker/adopt": "the run's history",
  "POST /v1/worker/complete": "the run's history",
  "POST /v1/worker/fail": "the run's history",
};

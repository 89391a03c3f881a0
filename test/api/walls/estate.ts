import { createHash, randomUUID } from "node:crypto";
import type { Role } from "../../../src/api/context.ts";
import { claimRuns } from "../../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../../src/authority/attempts/complete.ts";
import { failRuns } from "../../../src/authority/attempts/fail.ts";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { grantUpload } from "../../../src/authority/objects/grant-upload.ts";
import { stageObject } from "../../../src/authority/objects/stage-object.ts";
import { readId, showId } from "../../../src/kernel/ids.ts";
import { createOperationsDriver } from "../../../src/loops/operations.ts";
import { sql } from "../../../src/store/database.ts";
import { type Answer, call, REPORT, type TestServer } from "../server.ts";

/** A tenant that has one of everything, each with the tenant's own mark in it. */
export type Estate = {
  /** Stands in every name, text and payload of the tenant. */
  mark: string;
  tenant: string;
  keys: Readonly<Record<Exclude<Role, "admin"> | "expired" | "revoked", string>>;
  /** Things by what they are called in paths. */
  things: Readonly<Record<string, readonly string[]>>;
  requestKey: string;
  /** Of the call that made the first schedule. */
  requestId: string;
  fingerprint: string;
  /** Query of a signed link to the result of the first run. */
  link: Readonly<Record<string, string>>;
  send(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
};

const HINT = sql("test_hint", "select id from outbox where kind = 'run' and $1::uuid = any (runs)");
const EXPIRE = sql("test_expire", "update api_key set expires_at = clock_timestamp() where prefix = $1");
const REVOKE = sql("test_revoke", "update api_key set revoked_at = clock_timestamp() where prefix = $1");
const AGE = sql(
  "test_age",
  `update run set materialized_at = materialized_at - interval '1 minute', finished_at = finished_at - interval '1 minute'
    where materialized_at > clock_timestamp() - interval '10 s'`,
);
// Those of now are not listed yet, and nothing can be made older: the trail is append-only.
const OLD_EVENTS = sql(
  "test_old_events",
  `insert into audit_event (tenant_id, actor, action, subject, after, at)
   select $1, $2 || ' actor', 'schedule.pause', $2 || ' subject', jsonb_build_object('note', $2 || ' note'),
          clock_timestamp() - n * interval '1 minute' from generate_series(1, 3) n`,
);
const HOUR = 3_600_000;

export async function buildEstate(server: TestServer, mark: string): Promise<Estate> {
  const tenantId = await server.tenant(mark);
  const roles = ["owner", "operator", "viewer", "worker"] as const;
  const keys: Record<string, string> = {};
  for (const role of roles) keys[role] = await server.key(tenantId, role);
  for (const [name, statement] of [
    ["expired", EXPIRE],
    ["revoked", REVOKE],
  ] as const) {
    keys[name] = await server.key(tenantId, "owner");
    await server.db.query(statement, [keys[name].slice(3, 15)]);
  }

  const send: Estate["send"] = async (method, path, body, headers = {}) => {
    const answer = await call(server.url, method, path, {
      key: keys.owner,
      headers,
      ...(body === undefined ? {} : { body }),
    });
    if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
    return answer;
  };

  const calendars = ["one", "two"].map((which) => `${mark}-${which}`);
  for (const calendar of calendars) {
    await send("PUT", `/v1/calendars/${calendar}`, {
      zone: "Etc/UTC",
      weekend: [],
      dates: [{ date: "2030-01-01", name: `${mark} day` }],
    });
  }
  // Another version of the one that no schedule uses.
  const { version } = (await send("GET", `/v1/calendars/${calendars[1]}`)).body;
  const dates = { dates: [{ date: "2030-01-02", name: `${mark} day` }], expectedVersion: version };
  await send("PUT", `/v1/calendars/${calendars[1]}`, { zone: "Etc/UTC", weekend: [], ...dates });

  const effects = [{ name: "hook", kind: "webhook", url: `https://hooks.example.com/${mark}` }];
  const schedules: string[] = [];
  const requestIds: string[] = [];
  for (const [i, key] of [`${mark}-first`, `${mark}-second`].entries()) {
    const body = {
      name: `${mark} schedule ${i}`,
      key,
      labels: { team: mark },
      notes: `${mark} notes`,
      managedBy: mark,
      rule: { kind: "cron", expression: "0 * * * *", zone: "Etc/UTC" },
      calendars: [{ name: calendars[0], onExcluded: "exclude" }],
      overlap: { policy: "allow" },
      effects,
      job: REPORT,
      payload: { secret: mark },
    };
    const headers = i === 0 ? { "idempotency-key": `${mark}-request` } : {};
    const { body: made, headers: answered } = await send("POST", "/v1/schedules", body, headers);
    schedules.push(String(made.scheduleId));
    requestIds.push(String(answered.get("x-request-id")));
    await send("PATCH", `/v1/schedules/${made.scheduleId}`, { name: `${mark} renamed ${i}`, expectedRevision: 1 });
  }
  const [schedule = ""] = schedules;

  const claim = async (run: string): Promise<Grant> => {
    const runId = readId("run", run)!;
    const rows = await server.db.query<{ id: bigint }>(HINT, [runId]);
    const { grants } = await claimRuns(server.authority, {
      claimId: randomUUID(),
      worker: `${mark}-worker`,
      slots: { short: 100, long: 100, memory: 100 },
      hints: rows.map((row) => ({ rowId: row.id, epoch: 1 })),
      repeated: false,
    });
    return grants.find((grant) => grant.runId === runId)!;
  };
  const succeed = async (run: string) => {
    const { runId, fence } = await claim(run);
    const [uri, text] = [`memory:${run}`, `${mark} result`];
    server.objects.set(uri, text);
    const sha256 = createHash("sha256").update(text).digest("hex");
    const object = { runId, fence, name: `${mark}.txt`, uri, mediaType: "text/plain" };
    const granted = await grantUpload(server.authority, object);
    if (granted.kind !== "granted") throw new Error(granted.kind);
    const { objectId } = granted;
    const size = Buffer.byteLength(text);
    await stageObject(server.authority, { runId, fence, objectId, uri, version: sha256, sha256, size });
    await completeRuns(server.authority, [{ runId, fence, output: { objectId, sha256 } }]);
  };
  const giveUp = async (run: string) => {
    const { runId, fence } = await claim(run);
    const failure = { transient: false, code: "broken", message: `${mark} broke` };
    await failRuns(server.authority, [{ runId, fence, failure }]);
  };
  const runNow = async (headers: Record<string, string> = {}) =>
    String((await send("POST", `/v1/schedules/${schedule}/runs`, { payload: { secret: mark } }, headers)).body.runId);

  const succeeded = [await runNow({ "idempotency-key": `${mark}-request` }), await runNow()];
  for (const run of succeeded) await succeed(run);
  const failed = [await runNow(), await runNow()];
  for (const run of failed) await giveUp(run);
  const adHoc = { job: REPORT, payload: { secret: mark }, effects };
  const waiting = [
    String((await send("POST", "/v1/runs", adHoc, { "idempotency-key": `${mark}-request` })).body.runId),
    await runNow(),
  ];

  for (const label of [`${mark} signs`, `${mark} signs too`]) await send("POST", "/v1/signing-keys", { label });

  for (const which of ["one", "two"]) {
    await send("PUT", `/v1/email-templates/${mark}-${which}`, { subject: `${mark} subject`, text: `${mark} text` });
  }
  const webhooks: string[] = [];
  const deliveries: string[] = [];
  for (const which of ["one", "two"]) {
    const body = {
      url: `https://hooks.example.com/${mark}-${which}`,
      events: ["run.failed"],
      description: `${mark} hook`,
    };
    const webhookId = String((await send("POST", "/v1/webhooks", body)).body.webhookId);
    webhooks.push(webhookId);
    for (let i = 0; i < 2; i++) {
      deliveries.push(String((await send("POST", `/v1/webhooks/${webhookId}/test`, {})).body.deliveryId));
    }
  }

  const to = Math.floor(Date.now() / HOUR) * HOUR;
  const range = { from: new Date(to - 6 * HOUR).toISOString(), to: new Date(to).toISOString() };
  for (const headers of [{ "idempotency-key": `${mark}-request` }, {}]) {
    const body = { ...range, dryRun: false, reason: `${mark} reason` };
    await send("POST", `/v1/schedules/${schedule}/backfill`, body, headers as Record<string, string>);
  }
  await workOperations(server);
  await server.db.query(AGE);
  await server.db.query(OLD_EVENTS, [tenantId, mark]);
  const listed = async (path: string, id: string) =>
    ((await send("GET", path)).body.items as Record<string, unknown>[]).map((item) => String(item[id]));
  const [group] = (await send("GET", "/v1/dead-letters/groups")).body.items as { fingerprint: string }[];
  const { url } = (await send("GET", `/v1/runs/${succeeded[0]}/result`)).body as { url: string };

  const me = (await send("GET", "/v1/me")).body as { tenant: { tenantId: string } };
  const spareKeys = await server.db.query<{ id: string }>(
    sql("test_spare_keys", "select id from api_key where prefix = any($1)"),
    [[keys.viewer!, keys.expired!].map((key) => key.slice(3, 15))],
  );
  return {
    mark,
    tenant: me.tenant.tenantId,
    keys: keys as Estate["keys"],
    requestKey: `${mark}-request`,
    requestId: requestIds[0]!,
    fingerprint: group!.fingerprint,
    link: Object.fromEntries(new URL(url).searchParams),
    send,
    things: {
      tenant: [me.tenant.tenantId],
      schedule: [...schedules, `key:${mark}-first`],
      calendar: calendars,
      run: [...succeeded, ...failed, ...waiting],
      effect: await listed("/v1/effects", "effectId"),
      operation: await listed("/v1/operations", "operationId"),
      template: ["one", "two"].map((which) => `${mark}-${which}`),
      webhook: webhooks,
      delivery: deliveries,
      signingKey: await listed("/v1/signing-keys", "keyId"),
      key: spareKeys.map(({ id }) => showId("key", id)),
    },
  };
}

/** Does what operations have to do, without waiting for their pace. */
export async function workOperations({ authority, db }: TestServer): Promise<void> {
  for (let passes = 0; passes < 20; passes++) {
    await db.query(
      sql("test_hurry", "update operation set next_step_at = clock_timestamp() where state in ('pending', 'working')"),
    );
    await createOperationsDriver({ authority }).pass(new AbortController().signal);
  }
}

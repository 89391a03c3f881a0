import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import pg from "pg";
import { loadBundledTzData } from "../../src/app/tz-data.ts";
import { type ClaimOutcome, claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import {
  type Authority,
  type AuthoritySettings,
  createAuthority,
  type Signals,
} from "../../src/authority/authority.ts";
import { grantUpload } from "../../src/authority/objects/grant-upload.ts";
import { stageObject } from "../../src/authority/objects/stage-object.ts";
import { type DispatchPlan, leaveToRelay } from "../../src/authority/runs/bear.ts";
import { materialize } from "../../src/authority/runs/materialize.ts";
import { createSchedule } from "../../src/authority/schedules/create-schedule.ts";
import { createPinnedZones } from "../../src/authority/timezones/pinned-zones.ts";
import {
  DEFAULT_ATTEMPT_LIMIT_MS,
  type Definition,
  definitionSchema,
  type Payload,
} from "../../src/domain/definition.ts";
import { DEFAULT_LEASE } from "../../src/domain/lease.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { createFaultPoints, type TestFaultPoints } from "../../src/kernel/faults.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";
import { createDatabase, type Database } from "../../src/store/database.ts";
import { checkInvariants } from "./invariants.ts";
import { createTestDatabase } from "./postgres.ts";

/** An authority on a database of its own, with time moved by editing rows, never by sleeping. */
export type World = {
  authority: Authority;
  db: Database;
  url: string;
  faults: TestFaultPoints;
  tenantId: Uuid;
  admin: pg.Pool;
  newTenant(name: string): Promise<Uuid>;
  /** A schedule whose next instant is moved to `dueAgoMs` before now, so that it is due. */
  newSchedule(change?: Partial<Definition> & { tenantId?: Uuid; payload?: Payload; key?: string }): Promise<Uuid>;
  /** Makes the schedule's next nominal instant a whole second in the past; answers it. */
  makeDue(scheduleId: Uuid, agoMs?: number): Promise<number>;
  materialize(scheduleIds: readonly Uuid[], dispatch?: DispatchPlan): ReturnType<typeof materialize>;
  outbox(): Promise<OutboxLine[]>;
  /** Claims every available outbox row. */
  claimAll(worker?: string, slots?: number): Promise<Grant[]>;
  claim(
    rows: readonly bigint[],
    options?: { worker?: string; slots?: number; claimId?: Uuid; repeated?: boolean; epoch?: number },
  ): Promise<ClaimOutcome>;
  complete(grant: Grant, text?: string): Promise<{ kind: string }>;
  stage(grant: Grant, text: string, name?: string): Promise<{ objectId: Uuid; sha256: string }>;
  expireLease(runId: Uuid): Promise<void>;
  makeAvailable(): Promise<void>;
  run(runId: Uuid): Promise<Record<string, unknown>>;
  live(): Promise<LiveLine[]>;
  usage(): Promise<number>;
  /** The invariants of docs/lifecycle.md, as far as tables can tell; every test may end with it. */
  check(): Promise<void>;
  /** A session of its own, inside a transaction: somebody who holds rows. */
  stranger(): Promise<Stranger>;
  /** Resolves when that many sessions of this database wait for a lock. */
  lockWaits(sessions?: number): Promise<void>;
  /** Resolves when the database's clock is past `at` (epoch ms). */
  passes(at: number): Promise<void>;
  /** A second authority on the same database: another process. */
  another(settings?: Partial<AuthoritySettings>): Authority;
  close(): Promise<void>;
};

export type Stranger = {
  query(text: string, values?: unknown[]): Promise<Record<string, unknown>[]>;
  commit(): Promise<void>;
  rollback(): Promise<void>;
};

export type OutboxLine = {
  id: bigint;
  tenant_id: Uuid;
  runs: Uuid[];
  available_at: Date;
  published_at: Date | null;
  lane: number;
};
export type LiveLine = { id: Uuid; state: string; guard: Uuid | null; schedule_id: Uuid | null; scheduled_at: Date };

const tz = loadBundledTzData();
pg.types.setTypeParser(20, BigInt);
pg.types.setTypeParser(2951 as never, (text: string) => (text === "{}" ? [] : text.slice(1, -1).split(",")));

export function definitionOf(change: Record<string, unknown> = {}): Definition {
  return definitionSchema.parse({
    // Its next own instant is far away, so that none comes in between while a test runs.
    rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" },
    job: { kind: "function", name: "test.noop" },
    misfire: { policy: "latest", graceMs: 86_400_000 },
    ...change,
  });
}

export async function createWorld(
  options: {
    settings?: Partial<AuthoritySettings>;
    signals?: Signals;
    /** A migrated database on some other server, with the tenant of another world where it is a copy of that. */
    copy?: { url: string; tenantId?: Uuid };
  } = {},
): Promise<World> {
  const database =
    options.copy === undefined ? await createTestDatabase() : { url: options.copy.url, drop: async () => undefined };
  const admin = new pg.Pool({ connectionString: database.url, max: 6 });
  // A pool has ended before its sockets have; dropping the database then cuts them, which is no news.
  admin.on("connect", (client) => client.on("error", () => undefined));
  // A server that is stopped cuts them while they are idle.
  admin.on("error", () => undefined);
  const faults = createFaultPoints();
  const databases: Database[] = [];

  function authorityOf(settings: Partial<AuthoritySettings>, points: TestFaultPoints): Authority {
    const db = createDatabase({
      url: database.url,
      maxConnections: 8,
      applicationName: "test",
      clock: systemClock,
      log: silentLog,
    });
    databases.push(db);
    return createAuthority({
      db,
      clock: systemClock,
      log: silentLog,
      metrics: createMetrics(),
      pinned: createPinnedZones(tz.zones),
      settings: {
        shard: 0,
        lease: DEFAULT_LEASE,
        attemptLimitMs: DEFAULT_ATTEMPT_LIMIT_MS,
        verbDeadlineMs: 30_000,
        lockTimeoutMs: 5_000,
        ...settings,
      },
      faults: points,
      chance: () => 0.5,
      ...(options.signals === undefined ? {} : { signals: options.signals }),
    });
  }

  const authority = authorityOf(options.settings ?? {}, faults);
  const { db } = authority;

  async function newTenant(name: string): Promise<Uuid> {
    const id = mintId(Date.now(), 0);
    await admin.query("insert into tenant (id, name) values ($1, $2)", [id, name]);
    return id;
  }
  const tenantId = options.copy?.tenantId ?? (await newTenant("acme"));

  const world: World = {
    authority,
    db,
    url: database.url,
    faults,
    tenantId,
    admin,
    newTenant,
    async newSchedule(change = {}) {
      const { tenantId: owner, payload, key, ...definition } = change;
      const made = await createSchedule(authority, {
        tenantId: owner ?? tenantId,
        actor: "test",
        name: "a schedule",
        labels: {},
        definition: definitionOf(definition),
        payload: payload ?? {},
        ...(key === undefined ? {} : { key }),
      });
      if (made.kind !== "created") throw new Error(`not created: ${JSON.stringify(made)}`);
      return made.schedule.id;
    },
    async makeDue(scheduleId, agoMs = 1000) {
      const result = await admin.query(
        `update schedule_cursor
            set next_run_at = date_trunc('second', clock_timestamp() - $2 * interval '1 ms'),
                next_due_at = date_trunc('second', clock_timestamp() - $2 * interval '1 ms')
          where schedule_id = $1 returning next_run_at`,
        [scheduleId, agoMs],
      );
      return (result.rows[0].next_run_at as Date).getTime();
    },
    materialize: (ids, dispatch = leaveToRelay) => materialize(authority, ids, dispatch),
    async outbox() {
      return (await admin.query("select id, tenant_id, runs, available_at, published_at, lane from outbox order by id"))
        .rows;
    },
    async claimAll(worker = "worker-a", slots = 1000) {
      const rows = await admin.query(
        "select id from outbox where available_at <= clock_timestamp() and kind = 'run' order by id",
      );
      return (
        await world.claim(
          rows.rows.map((row) => row.id),
          { worker, slots },
        )
      ).grants;
    },
    claim(rows, claim = {}) {
      return claimRuns(authority, {
        claimId: claim.claimId ?? randomUUID(),
        worker: claim.worker ?? "worker-a",
        slots: { short: claim.slots ?? 1000, long: 1000, memory: 1000 },
        hints: rows.map((rowId) => ({ rowId, epoch: claim.epoch ?? 1 })),
        repeated: claim.repeated ?? false,
      });
    },
    async stage(grant, text, name = "result") {
      const sha256 = Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(text))).toString("hex");
      const granted = await grantUpload(authority, {
        runId: grant.runId,
        fence: grant.fence,
        name,
        uri: `test:${grant.runId}/${grant.attempt}/${sha256}`,
        mediaType: "text/plain",
      });
      if (granted.kind !== "granted") throw new Error(`no upload grant: ${granted.kind}`);
      const { objectId } = granted;
      const staged = await stageObject(authority, {
        runId: grant.runId,
        fence: grant.fence,
        objectId,
        uri: `test:${sha256}`,
        version: sha256,
        sha256,
        size: text.length,
      });
      if (staged.kind !== "staged") throw new Error(`not staged: ${JSON.stringify(staged)}`);
      return { objectId, sha256 };
    },
    async complete(grant, text) {
      const output = text === undefined ? null : await world.stage(grant, text);
      return (await completeRuns(authority, [{ runId: grant.runId, fence: grant.fence, output }]))[0]!;
    },
    async expireLease(runId) {
      await admin.query("update live_run set lease_until = clock_timestamp() - interval '1 second' where id = $1", [
        runId,
      ]);
    },
    async makeAvailable() {
      await admin.query(
        `update outbox set available_at = clock_timestamp() - interval '1 ms'
          where id = any(array(select id from outbox where available_at > clock_timestamp() order by id for update skip locked))`,
      );
      await admin.query(
        `update live_run set not_before = clock_timestamp() - interval '1 ms'
          where id = any(array(select id from live_run where not_before > clock_timestamp() order by id for update skip locked))`,
      );
    },
    async run(runId) {
      return (await admin.query("select * from run where id = $1", [runId])).rows[0];
    },
    async live() {
      return (
        await admin.query("select id, state, guard, schedule_id, scheduled_at from live_run order by scheduled_at, id")
      ).rows;
    },
    async usage() {
      return Number((await admin.query("select coalesce(sum(running), 0) as n from usage")).rows[0].n);
    },
    check: () => checkInvariants(admin),
    async stranger() {
      const client = await admin.connect();
      await client.query("begin");
      let open = true;
      const end = async (how: "commit" | "rollback") => {
        if (!open) return;
        open = false;
        await client.query(how);
        client.release();
      };
      return {
        query: async (text, values) => (await client.query(text, values)).rows,
        commit: () => end("commit"),
        rollback: () => end("rollback"),
      };
    },
    async lockWaits(sessions = 1) {
      const waiting =
        "select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
      while ((await admin.query(waiting)).rows[0].n < sessions) await setImmediate();
    },
    async passes(at) {
      while (
        (await admin.query("select extract(epoch from clock_timestamp()) * 1000 <= $1 as early", [at])).rows[0].early
      )
        await setImmediate();
    },
    another: (settings = {}) => authorityOf(settings, createFaultPoints()),
    async close() {
      await Promise.all(databases.map((one) => one.close()));
      await admin.end();
      await database.drop();
    },
  };
  return world;
}

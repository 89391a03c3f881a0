import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** The one row that says whose commits count, what is in doubt when they may be lost, and the record of recoveries. */

const HERE = `
  h.system_identifier::text as "systemId", h.timeline, h.database_oid::text as "databaseId"
  from (select (select system_identifier from pg_control_system()) as system_identifier,
               ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline,
               (select oid from pg_database where datname = current_database()) as database_oid) h`;
const READ_HERE = sql("recovery_read_here", `select ${HERE}`);
const READ_RECORDED = `select epoch, system_identifier::text as "systemId", timeline, database_oid::text as "databaseId"
  from authority_epoch`;
const READ = sql("recovery_read", READ_RECORDED);
const LOCK = sql("recovery_lock", `${READ_RECORDED} for update`);
const RAISE = sql(
  "recovery_raise",
  `update authority_epoch
      set epoch = $1, raised_at = $2, system_identifier = $3::bigint, timeline = $4, database_oid = $5::text::oid`,
);

const FIND_RUNS = sql(
  "recovery_find_runs",
  `select l.id, l.tenant_id as "tenantId", l.schedule_id as "scheduleId", l.state, l.attempt, l.worker, l.started_at as "startedAt"
     from live_run l
    where l.state = 'running'
       or l.state = 'retrying' and exists (
            select from attempt a where a.scheduled_at = l.scheduled_at and a.run_id = l.id and a.n = l.attempt
               and a.outcome = 'expired' and a.ended_at >= pg_postmaster_start_time())
    order by l.scheduled_at, l.id limit $1`,
);
const FIND_EFFECTS = sql(
  "recovery_find_effects",
  `select id, tenant_id as "tenantId", run_id as "runId", kind, action_id as "actionId", state, on_uncertain as "onUncertain",
          first_sent_at as "firstSentAt"
     from effect where state in ('pending', 'sending') order by created_at, id limit $1`,
);

const LOCK_RUNNING = sql(
  "recovery_lock_running",
  "select id from live_run where state = 'running' order by id for update",
);
// A callback has its own term, which may be far longer.
const RENEW = sql(
  "recovery_renew_leases",
  `update live_run set lease_until = greatest(lease_until, $2::timestamptz) where id = any($1::uuid[])`,
);
const LOCK_EFFECTS = sql(
  "recovery_lock_effects",
  "select id from effect where state in ('pending', 'sending') order by id for update",
);
const DOUBT = sql(
  "recovery_doubt_effects",
  `update effect
      set in_doubt = true, first_sent_at = coalesce(first_sent_at, created_at),
          lease_until = case when state = 'sending' then least(lease_until, $2::timestamptz) end,
          error_message = coalesce(error_message, $3)
    where id = any($1::uuid[])`,
);
const INSERT = sql(
  "recovery_insert",
  `insert into recovery (epoch, recovered_at, actor, reason, findings, nothing_lost) values ($1, $2, $3, $4, $5, $6)`,
);
const FINISH = sql(
  "recovery_finish",
  "update recovery set finished_at = clock_timestamp(), tally = $2 where epoch = $1 and finished_at is null",
);
const READ_NEWEST = sql(
  "recovery_read_newest",
  `select epoch, recovered_at as "recoveredAt", finished_at as "finishedAt", actor, reason from recovery
    order by epoch desc limit 1`,
);
// As many rows as there were recoveries.
const READ_LOST_UNTIL = sql(
  "recovery_read_lost_until",
  "select max(recovered_at) as until from recovery where not nothing_lost",
);

/** What tells a server from its copies. */
export type Identity = { systemId: string; timeline: number; databaseId: string | null };

export async function readIdentity(db: Queryable): Promise<Identity> {
  return (await db.query<Identity>(READ_HERE))[0]!;
}

/** The recorded identity; undefined before the first migration. */
export async function readRecorded(db: Queryable): Promise<(Identity & { epoch: number }) | undefined> {
  return (await db.query<Identity & { epoch: number }>(READ))[0];
}

export async function lockRecorded(tx: Queryable): Promise<Identity & { epoch: number }> {
  return (await tx.query<Identity & { epoch: number }>(LOCK))[0]!;
}

export async function raiseEpoch(tx: Queryable, epoch: number, here: Identity, nowAt: Instant): Promise<void> {
  await tx.query(RAISE, [epoch, instantText(nowAt), here.systemId, here.timeline, here.databaseId]);
}

/** Their workers may have finished, gone on or died in what is lost. */
export type DoubtfulRun = {
  id: Uuid;
  tenantId: Uuid;
  scheduleId: Uuid | null;
  /** `retrying`: its lease ran out since this server started. */
  state: "running" | "retrying";
  attempt: number;
  worker: string | null;
  startedAt: Instant;
};

export function findDoubtfulRuns(db: Queryable, limit: number): Promise<DoubtfulRun[]> {
  return db.query<DoubtfulRun>(FIND_RUNS, [limit]);
}

/** They may have been sent in what is lost. */
export type DoubtfulEffect = {
  id: Uuid;
  tenantId: Uuid;
  runId: Uuid;
  kind: string;
  actionId: string;
  state: "pending" | "sending";
  onUncertain: string;
  firstSentAt: Instant | null;
};

export function findDoubtfulEffects(db: Queryable, limit: number): Promise<DoubtfulEffect[]> {
  return db.query<DoubtfulEffect>(FIND_EFFECTS, [limit]);
}

export async function lockRunning(tx: Queryable): Promise<Uuid[]> {
  return (await tx.query<{ id: Uuid }>(LOCK_RUNNING)).map((row) => row.id);
}

export async function renewAllLeases(tx: Queryable, runIds: readonly Uuid[], until: Instant): Promise<void> {
  if (runIds.length > 0) await tx.query(RENEW, [runIds, instantText(until)]);
}

export async function lockOpenEffects(tx: Queryable): Promise<Uuid[]> {
  return (await tx.query<{ id: Uuid }>(LOCK_EFFECTS)).map((row) => row.id);
}

/** Nobody may say any more that they did not happen; those that are being sent are given up at once. */
export async function doubtEffects(
  tx: Queryable,
  effectIds: readonly Uuid[],
  message: string,
  nowAt: Instant,
): Promise<void> {
  if (effectIds.length > 0) await tx.query(DOUBT, [effectIds, instantText(nowAt), message]);
}

export async function insertRecovery(
  tx: Queryable,
  recovery: { epoch: number; actor: string; reason: string; findings: unknown; nothingLost: boolean },
  nowAt: Instant,
): Promise<void> {
  const { epoch, actor, reason, findings, nothingLost } = recovery;
  await tx.query(INSERT, [epoch, instantText(nowAt), actor, reason, JSON.stringify(findings), nothingLost]);
}

export async function finishRecovery(db: Queryable, epoch: number, tally: Record<string, number>): Promise<void> {
  await db.query(FINISH, [epoch, JSON.stringify(tally)]);
}

export type Recovery = {
  epoch: number;
  recoveredAt: Instant;
  finishedAt: Instant | null;
  actor: string;
  reason: string;
};

export async function findNewestRecovery(db: Queryable): Promise<Recovery | undefined> {
  return (await db.query<Recovery>(READ_NEWEST))[0];
}

/** When the newest recovery was that may have lost commits: what was due before may have happened in them. */
export async function readLostUntil(tx: Queryable): Promise<Instant | null> {
  return (await tx.query<{ until: Instant | null }>(READ_LOST_UNTIL))[0]!.until;
}

import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, type Statement, sql, type Transaction } from "../database.ts";
import { firstRunId } from "../first-run-id.ts";
import { instantText } from "../values.ts";

/** Up to when rows are given up: runs' belongings with their runs, the rest by its age. */
export type Limits = {
  floorAt: Instant;
  endedBefore: Instant;
  keysBefore: Instant;
};

/** What `id` names goes, at most $2 rows of it in the order given; answers how many went. */
const prune = (table: string, id: string, old: string) =>
  sql(
    `prune_${table}`,
    `with gone as (delete from ${table} where (${id}) in (${old}) returning 1) select count(*)::int as rows from gone`,
  );

const ofRuns = (table: string, id: string, settled: string) =>
  prune(
    table,
    id,
    `select ${id} from ${table} where run_id < ${firstRunId("$1")} and ${settled} order by run_id limit $2`,
  );

// Ids grow with time: only the oldest rows are looked at, whether there is something to delete or not.
const byAge = (table: string, at: string) =>
  prune(
    table,
    "id",
    `select id from (select id, ${at} from ${table} order by id limit $2) old where ${at} < $1::timestamptz`,
  );

/** Nothing unsettled is touched. What is left of runs below the floor goes by their ids. */
const PRUNES: readonly { table: string; statement: Statement; limit: keyof Limits }[] = [
  { table: "dead_letter", statement: ofRuns("dead_letter", "run_id", "resolved_at is not null"), limit: "floorAt" },
  {
    table: "dead_letter_resolution",
    statement: ofRuns(
      "dead_letter_resolution",
      "run_id, n",
      "not exists (select from dead_letter l where l.run_id = dead_letter_resolution.run_id)",
    ),
    limit: "floorAt",
  },
  {
    table: "effect_attempt",
    statement: prune(
      "effect_attempt",
      "effect_id, n",
      `select a.effect_id, a.n from effect e join effect_attempt a on a.effect_id = e.id
        where e.run_id < ${firstRunId("$1")} and e.state in ('sent', 'failed', 'resolved') order by e.run_id limit $2`,
    ),
    limit: "floorAt",
  },
  {
    table: "effect",
    statement: ofRuns(
      "effect",
      "id",
      "state in ('sent', 'failed', 'resolved') and not exists (select from effect_attempt a where a.effect_id = effect.id)",
    ),
    limit: "floorAt",
  },
  { table: "attempt_log", statement: ofRuns("attempt_log", "run_id, attempt, n", "true"), limit: "floorAt" },
  { table: "object", statement: ofRuns("object", "id", "state = 'deleted'"), limit: "floorAt" },
  {
    table: "request_key",
    statement: prune(
      "request_key",
      "scope, key",
      "select scope, key from request_key where created_at < $1::timestamptz order by created_at limit $2",
    ),
    limit: "keysBefore",
  },
  { table: "operation", statement: byAge("operation", "finished_at"), limit: "endedBefore" },
  // By what was told and not by when that was settled: else those that a person has sent again would stand before all others.
  {
    table: "webhook_delivery",
    statement: prune(
      "webhook_delivery",
      "id",
      `select id from (select id, occurred_at from webhook_delivery where settled_at is not null order by id limit $2) old
        where occurred_at < $1::timestamptz`,
    ),
    limit: "endedBefore",
  },
];

// The trigger that keeps events from being deleted lets through who says so, for his transaction.
const ALLOW = sql("prune_allow_audit", "select set_config('punctual.retention', 'on', true)");
const AUDIT = byAge("audit_event", "at");

/** Deletes the oldest audit events; answers how many went. */
export async function pruneAudit(tx: Transaction, before: Instant, limit: number): Promise<number> {
  await tx.query(ALLOW);
  return (await tx.query<{ rows: number }>(AUDIT, [instantText(before), limit]))[0]!.rows;
}

const READ_RANGES = sql(
  "prune_read_ranges",
  `select schedule_id, from_at, to_at < $3::timestamptz and created_at < $4::timestamptz as old from skip_range
    where (schedule_id, from_at) > ($1::uuid, $2::timestamptz) order by schedule_id, from_at limit $5`,
);
const DELETE_RANGES = sql(
  "prune_ranges",
  `delete from skip_range g using unnest($1::uuid[], $2::timestamptz[]) as old (schedule_id, from_at)
    where g.schedule_id = old.schedule_id and g.from_at = old.from_at`,
);

/** Deletes at most `limit` rows of each table; answers how many went, by table. Twice is harmless. */
export async function pruneOld(db: Queryable, limits: Limits, limit: number): Promise<Record<string, number>> {
  const gone: Record<string, number> = {};
  for (const { table, statement, limit: which } of PRUNES) {
    const [row] = await db.query<{ rows: number }>(statement, [instantText(limits[which]), limit]);
    if (row!.rows > 0) gone[table] = row!.rows;
  }
  return gone;
}

/** Where the walk over all ranges has got to: there is no index of their ends, and no need for one. */
export type RangeAfter = { scheduleId: Uuid; fromAt: Instant };
const BEFORE_ALL: RangeAfter = { scheduleId: NIL_ID, fromAt: 0 };

/** Looks at `limit` ranges and deletes those that end below the floor and are on record for long. */
export async function pruneRanges(
  db: Queryable,
  limits: Limits,
  after: RangeAfter = BEFORE_ALL,
  limit: number,
): Promise<{ gone: number; after: RangeAfter | undefined }> {
  const rows = await db.query<{ schedule_id: Uuid; from_at: Instant; old: boolean }>(READ_RANGES, [
    after.scheduleId,
    instantText(after.fromAt),
    instantText(limits.floorAt),
    instantText(limits.endedBefore),
    limit,
  ]);
  const old = rows.filter((row) => row.old);
  if (old.length > 0) await db.query(DELETE_RANGES, [old.map((row) => row.schedule_id), old.map((row) => row.from_at)]);
  const last = rows.at(-1);
  const isLast = last === undefined || rows.length < limit;
  return {
    gone: old.length,
    after: isLast ? undefined : { scheduleId: last.schedule_id, fromAt: last.from_at },
  };
}

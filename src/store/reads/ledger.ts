import type { Definition } from "../../domain/definition.ts";
import type { RunState, SkipReason, Trigger } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** The records of a schedule's nominal instants, in their order. Runs on demand have no nominal instant of the rule. */

export type LedgerRun = {
  kind: "run";
  at: Instant;
  prevAt: Instant | null;
  id: Uuid;
  state: RunState;
  trigger: Trigger;
  revision: number;
  reason: SkipReason | null;
  attempt: number;
  startedAt: Instant | null;
  finishedAt: Instant | null;
  error: { code: string; message: string } | null;
};
/** `instants`: null where they were too many to count; `backfilled` of them have become runs, which are listed too. */
export type LedgerRange = {
  kind: "range";
  at: Instant;
  toAt: Instant;
  prevAt: Instant | null;
  revision: number;
  reason: SkipReason;
  instants: number | null;
  backfilled: number;
};
export type LedgerEntry = LedgerRun | LedgerRange;

const NOMINAL = "r.trigger in ('schedule', 'catch-up', 'backfill')";
/** The range that reaches into a period from before, if there is one: ranges do not overlap. */
const FIRST_RANGE = "coalesce((select max(from_at) from skip_range where schedule_id = $1 and from_at < $2), $2)";

const LIST = sql(
  "ledger_list",
  `(select 'run' as kind, r.scheduled_at as at, null::timestamptz as "toAt", r.prev_scheduled_at as "prevAt", r.id,
           coalesce(l.state, case r.state when 'open' then 'queued' else r.state end) as state, r.trigger, r.revision,
           r.skip_reason as reason, coalesce(l.attempt, r.attempts) as attempt,
           coalesce(r.started_at, l.started_at) as "startedAt", r.finished_at as "finishedAt",
           case when r.error_code is not null or r.error_message is not null
                then jsonb_build_object('code', coalesce(r.error_code, 'failed'), 'message', coalesce(r.error_message, ''))
           end as error, null::float8 as instants, null::float8 as backfilled
      from run r left join live_run l on l.id = r.id
     where r.schedule_id = $1 and r.scheduled_at >= $2 and r.scheduled_at < $3 and ${NOMINAL} and r.materialized_at <= $4
     order by r.scheduled_at limit $6)
   union all
   (select 'range', from_at, to_at, prev_scheduled_at, null, null, null, revision, reason, null, null, null, null,
           instants::float8, backfilled::float8
      from skip_range
     where schedule_id = $1 and from_at >= $5 and from_at < $3 and to_at >= $2 and created_at <= $4
     order by from_at limit $6)
   order by at, kind limit $6`,
);
const FIND_FIRST_RANGE = sql("ledger_first_range", `select ${FIRST_RANGE} as at`);

/** Where the list goes on: after the range, or the run, that began at `at`. */
export type LedgerPosition = { kind: "run" | "range"; at: Instant };
type Period = { fromAt: Instant; toAt: Instant };

/** Only what was written up to `boundAt`: the same for all pages of one walk. */
export async function listLedger(
  at: Queryable,
  scheduleId: Uuid,
  period: Period & { after?: LedgerPosition; boundAt: Instant; limit: number },
): Promise<LedgerEntry[]> {
  const { fromAt, toAt, after, boundAt, limit } = period;
  // Nominal instants are whole. A run inside a range comes after it, also at the instant at which both begin.
  const runsFrom = after === undefined ? fromAt : after.kind === "run" ? after.at + 1 : after.at;
  const rangesFrom =
    after === undefined
      ? (await at.query<{ at: Instant }>(FIND_FIRST_RANGE, [scheduleId, instantText(fromAt)]))[0]!.at
      : after.at + 1;
  return at.query<LedgerEntry>(LIST, [
    scheduleId,
    instantText(Math.max(fromAt, runsFrom)),
    instantText(toAt),
    instantText(boundAt),
    instantText(rangesFrom),
    limit,
  ]);
}

const NTH = sql(
  "ledger_nth",
  `select least(
     (select scheduled_at from run where schedule_id = $1 and scheduled_at >= $2 and scheduled_at < $3
       order by scheduled_at offset $4 limit 1),
     (select from_at from skip_range where schedule_id = $1 and from_at >= $2 and from_at < $3
       order by from_at offset $4 limit 1)) as at`,
);

/** The end of the period, or where its first `most` records end. */
export async function endOfFirst(at: Queryable, scheduleId: Uuid, period: Period, most: number): Promise<Instant> {
  const { fromAt, toAt } = period;
  const [row] = await at.query<{ at: Instant | null }>(NTH, [scheduleId, instantText(fromAt), instantText(toAt), most]);
  return row!.at ?? toAt;
}

export type LedgerCounts = {
  ran: number;
  pending: number;
  skipped: number;
  /** Ranges that were not counted, or that reach beyond the period. */
  uncounted: number;
};

const COUNT = sql(
  "ledger_count",
  `select count(*) filter (where r.state not in ('open', 'skipped'))::float8 as ran,
          count(*) filter (where r.state = 'open')::float8 as pending,
          count(*) filter (where r.state = 'skipped')::float8 + coalesce(max(g.skipped), 0)::float8 as skipped,
          coalesce(max(g.uncounted), 0)::float8 as uncounted
     from (select coalesce(sum(instants - backfilled) filter (where from_at >= $2 and to_at < $3), 0) as skipped,
                  count(*) filter (where instants is null or from_at < $2 or to_at >= $3) as uncounted
             from skip_range
            where schedule_id = $1 and from_at >= ${FIRST_RANGE} and from_at < $3 and to_at >= $2 and created_at <= $4) g
     left join run r on r.schedule_id = $1 and r.scheduled_at >= $2 and r.scheduled_at < $3 and ${NOMINAL}
                    and r.materialized_at <= $4`,
);

export async function countLedger(
  at: Queryable,
  scheduleId: Uuid,
  { fromAt, toAt, boundAt }: Period & { boundAt: Instant },
): Promise<LedgerCounts> {
  const values = [scheduleId, instantText(fromAt), instantText(toAt), instantText(boundAt)];
  return (await at.query<LedgerCounts>(COUNT, values))[0]!;
}

const DEFINITIONS = sql(
  "ledger_definitions",
  "select revision, definition from schedule_revision where schedule_id = $1 and revision = any($2::int[])",
);

/** What these revisions say, by their numbers. */
export async function readDefinitions(
  at: Queryable,
  scheduleId: Uuid,
  revisions: readonly number[],
): Promise<Map<number, Definition>> {
  const rows = await at.query<{ revision: number; definition: Definition }>(DEFINITIONS, [scheduleId, revisions]);
  return new Map(rows.map((row) => [row.revision, row.definition]));
}

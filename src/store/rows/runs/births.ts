import type { NewRange, NewRun, NewSkip } from "../../../domain/materialization.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";
import { countEnds } from "../rollups.ts";
import { END_COLUMNS, tellEnds } from "../webhooks/births.ts";

/** Work and payload of a run that do not stand in a revision; both null for an ordinary run of a schedule. */
export type OwnWork = { job: unknown; payload: unknown };

const INSERT_RUNS = sql(
  "births_insert_runs",
  `insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at,
                    prev_scheduled_at, revision, trigger, state, job, payload)
   select id, scheduled_at, schedule_id, tenant_id, class, due_at, $12, $12, prev_scheduled_at, revision, trigger,
          'open', job, payload
     from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[],
                 $7::timestamptz[], $8::int[], $9::text[], $10::jsonb[], $11::jsonb[])
       as r (id, scheduled_at, schedule_id, tenant_id, class, due_at, prev_scheduled_at, revision, trigger, job, payload)
   on conflict (scheduled_at, id) do nothing
   returning id`,
);
const INSERT_LIVE = sql(
  "births_insert_live",
  `insert into live_run (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before,
                         due_at, admitted_at, start_deadline, budget_from, held_by, own_work, content, tells_end,
                         pauses_on_failure, has_effects)
   select id, scheduled_at, schedule_id, tenant_id, class, lane, revision,
          case when guard is null then 'blocked' else 'queued' end, guard, due_at, due_at, $13, start_deadline, $13,
          held_by, own_work, content, tells_end, pauses_on_failure, has_effects
     from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::smallint[], $7::int[],
                 $8::uuid[], $9::timestamptz[], $10::timestamptz[], $11::text[], $12::boolean[], $14::uuid[],
                 $15::boolean[], $16::boolean[], $17::boolean[])
       as r (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, guard, due_at, start_deadline, held_by,
             own_work, content, tells_end, pauses_on_failure, has_effects)`,
);
const INSERT_SKIPS = sql(
  "births_insert_skips",
  `with skips as (
   insert into run (id, scheduled_at, schedule_id, tenant_id, class, due_at, admitted_at, materialized_at,
                    prev_scheduled_at, revision, trigger, state, skip_reason, finished_at)
   select id, scheduled_at, schedule_id, tenant_id, class, due_at, $11, $11, prev_scheduled_at, revision, trigger,
          'skipped', reason, $11
     from unnest($1::uuid[], $2::timestamptz[], $3::uuid[], $4::uuid[], $5::text[], $6::timestamptz[],
                 $7::timestamptz[], $8::int[], $9::text[], $10::text[])
       as r (id, scheduled_at, schedule_id, tenant_id, class, due_at, prev_scheduled_at, revision, trigger, reason)
   on conflict (scheduled_at, id) do nothing
   returning ${END_COLUMNS}),
   told as (${tellEnds("skips", "$11")})
   ${countEnds("skips", "$11")}`,
);
const INSERT_RANGES = sql(
  "births_insert_ranges",
  `insert into skip_range (schedule_id, from_at, to_at, tenant_id, revision, reason, instants, prev_scheduled_at,
                           created_at)
   select schedule_id, from_at, to_at, tenant_id, revision, reason, instants, prev_scheduled_at, $9
     from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[], $4::uuid[], $5::int[], $6::text[], $7::bigint[],
                 $8::timestamptz[])
       as r (schedule_id, from_at, to_at, tenant_id, revision, reason, instants, prev_scheduled_at)
   on conflict (schedule_id, from_at) do nothing`,
);

/** Inserts open runs; answers the ids that are new. A run that exists already is the same run (its id says so). */
export async function insertRuns(
  tx: Queryable,
  runs: readonly NewRun[],
  own: ReadonlyMap<Uuid, OwnWork>,
  nowAt: Instant,
): Promise<Set<Uuid>> {
  if (runs.length === 0) return new Set();
  const rows = await tx.query<{ id: Uuid }>(INSERT_RUNS, [
    runs.map((run) => run.id),
    runs.map((run) => run.scheduledAt),
    runs.map((run) => run.scheduleId),
    runs.map((run) => run.tenantId),
    runs.map((run) => run.class),
    runs.map((run) => run.dueAt),
    runs.map((run) => run.prevScheduledAt),
    runs.map((run) => run.revision),
    runs.map((run) => run.trigger),
    runs.map((run) => own.get(run.id)?.job),
    runs.map((run) => own.get(run.id)?.payload),
    instantText(nowAt),
  ]);
  return new Set(rows.map((row) => row.id));
}

export async function insertLiveRuns(
  tx: Queryable,
  runs: readonly NewRun[],
  own: ReadonlyMap<Uuid, OwnWork>,
  nowAt: Instant,
): Promise<void> {
  await tx.query(INSERT_LIVE, [
    runs.map((run) => run.id),
    runs.map((run) => run.scheduledAt),
    runs.map((run) => run.scheduleId),
    runs.map((run) => run.tenantId),
    runs.map((run) => run.class),
    runs.map((run) => run.lane),
    runs.map((run) => run.revision),
    runs.map((run) => run.guard),
    runs.map((run) => run.dueAt),
    runs.map((run) => run.startDeadlineAt),
    runs.map((run) => run.heldBy),
    runs.map((run) => own.has(run.id)),
    instantText(nowAt),
    runs.map((run) => run.content),
    runs.map((run) => run.tellsEnd ?? false),
    runs.map((run) => run.pausesOnFailure ?? false),
    runs.map((run) => run.hasEffects ?? false),
  ]);
}

export async function insertSkips(tx: Queryable, skips: readonly NewSkip[], nowAt: Instant): Promise<void> {
  if (skips.length === 0) return;
  await tx.query(INSERT_SKIPS, [
    skips.map((skip) => skip.id),
    skips.map((skip) => skip.scheduledAt),
    skips.map((skip) => skip.scheduleId),
    skips.map((skip) => skip.tenantId),
    skips.map((skip) => skip.class),
    skips.map((skip) => skip.dueAt),
    skips.map((skip) => skip.prevScheduledAt),
    skips.map((skip) => skip.revision),
    skips.map((skip) => skip.trigger),
    skips.map((skip) => skip.reason),
    instantText(nowAt),
  ]);
}

export async function insertSkipRanges(tx: Queryable, ranges: readonly NewRange[], nowAt: Instant): Promise<void> {
  if (ranges.length === 0) return;
  await tx.query(INSERT_RANGES, [
    ranges.map((range) => range.scheduleId),
    ranges.map((range) => range.fromAt),
    ranges.map((range) => range.toAt),
    ranges.map((range) => range.tenantId),
    ranges.map((range) => range.revision),
    ranges.map((range) => range.reason),
    ranges.map((range) => range.instants),
    ranges.map((range) => range.prevScheduledAt),
    instantText(nowAt),
  ]);
}

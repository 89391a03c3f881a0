import type { ChainEvidence, ChainStart, Segment } from "../../domain/ledger/chain.ts";
import type { Instant } from "../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { instantText } from "../values.ts";

/** The evidence of chains (see domain/ledger/chain.ts). All reads of one verdict belong into one snapshot. */

/**
 * Runs that are links of a chain. A backfilled run that names no instant before it made its instant anew (in a range, or
 * where nothing was on record), or was the skip that started a chain; the reads below tell the two apart.
 */
const IS_LINK = `(r.trigger in ('schedule', 'catch-up')
  or r.trigger = 'backfill' and r.prev_scheduled_at is not null
     and not exists (select from skip_range s where s.schedule_id = r.schedule_id
                        and s.from_at <= r.scheduled_at and s.to_at >= r.scheduled_at))`;

const isBackfilled = (scheduleId: string, at: string) =>
  `exists (select from run b where b.schedule_id = ${scheduleId} and b.scheduled_at = ${at} and b.trigger = 'backfill')`;

/** Gaps and islands: from the links of schedules to their segments. */
const segmentsOf = (links: string) => `
  with links as (${links}),
  marked as (
    select *, case when lag(to_at) over chain = prev_scheduled_at and lag(to_at) over chain < from_at then 0 else 1 end as begins
      from links window chain as (partition by schedule_id order by from_at, to_at)),
  numbered as (
    select *, sum(begins) over (partition by schedule_id order by from_at, to_at) as segment from marked),
  segments as (
    select schedule_id, min(from_at) as from_at, max(to_at) as to_at,
           min(prev_scheduled_at) filter (where begins = 1) as prev_at,
           min(revision) as revision -- the first link's: only a backfill gives a link another, and a later one
      from numbered group by schedule_id, segment)
  select schedule_id as "scheduleId", from_at as "fromAt", to_at as "toAt", prev_at as "prevAt", revision,
         ${isBackfilled("schedule_id", "prev_at")} as "isPrevBackfilled"
    from segments order by schedule_id, from_at, to_at`;

const SEGMENTS_OF_SCHEDULES = sql(
  "chains_segments_of_schedules",
  segmentsOf(`
    select r.schedule_id, r.scheduled_at as from_at, r.scheduled_at as to_at, r.prev_scheduled_at, r.revision
      from run r where r.schedule_id = any($1::uuid[]) and ${IS_LINK}
    union all
    select schedule_id, from_at, to_at, prev_scheduled_at, revision from skip_range where schedule_id = any($1::uuid[])`),
);
const SEGMENTS_WITHIN = sql(
  "chains_segments_within",
  segmentsOf(`
    select r.schedule_id, r.scheduled_at as from_at, r.scheduled_at as to_at, r.prev_scheduled_at, r.revision
      from run r where r.schedule_id = $1 and r.scheduled_at >= $2 and r.scheduled_at <= $3 and ${IS_LINK}
    union all
    select schedule_id, from_at, to_at, prev_scheduled_at, revision
      from skip_range where schedule_id = $1 and from_at >= $2 and from_at <= $3`),
);

/** The newest link before $2 and the oldest from $3 on: a period is judged together with what it is linked to. */
const EDGES = sql(
  "chains_edges",
  `select greatest(
            (select r.scheduled_at from run r where r.schedule_id = $1 and r.scheduled_at < $2 and ${IS_LINK}
              order by r.scheduled_at desc limit 1),
            (select from_at from skip_range where schedule_id = $1 and from_at < $2 order by from_at desc limit 1)) as before,
          least(
            (select r.scheduled_at from run r where r.schedule_id = $1 and r.scheduled_at >= $3 and ${IS_LINK}
              order by r.scheduled_at limit 1),
            (select from_at from skip_range where schedule_id = $1 and from_at >= $3 order by from_at limit 1)) as after`,
);

const STARTS = sql(
  "chains_starts",
  `select schedule_id as "scheduleId", started_at as "startedAt", reason, revision, prev_last_at as "prevLastAt",
          ${isBackfilled("c.schedule_id", "c.prev_last_at")} as "isPrevLastBackfilled",
          prev_next_at as "prevNextAt", prev_fault as "prevFault"
     from chain c where schedule_id = any($1::uuid[]) order by schedule_id, n`,
);
const CURSORS = sql(
  "chains_cursors",
  `select c.schedule_id as "scheduleId", c.last_nominal_at as "lastNominalAt", c.next_run_at as "nextRunAt",
          ${isBackfilled("c.schedule_id", "c.last_nominal_at")} as "isLastBackfilled",
          (select floor_at from history_floor) as "floorAt"
     from schedule_cursor c where c.schedule_id = any($1::uuid[])`,
);

type Of<Row> = Row & { scheduleId: Uuid };
type CursorOf = Of<ChainEvidence["cursor"] & { floorAt: Instant }>;

/** Whole chains, by schedule. */
export async function readChains(at: Queryable, scheduleIds: readonly Uuid[]): Promise<Map<Uuid, ChainEvidence>> {
  const segments = await at.query<Of<Segment>>(SEGMENTS_OF_SCHEDULES, [scheduleIds]);
  return gather(at, scheduleIds, segments, { isCutBefore: false, isCutAfter: false });
}

/** What tells of one schedule's instants in [fromAt, toAt). */
export async function readChainWithin(
  at: Queryable,
  scheduleId: Uuid,
  fromAt: Instant,
  toAt: Instant,
): Promise<ChainEvidence | undefined> {
  const [from, to] = [instantText(fromAt), instantText(toAt)];
  const [edges] = await at.query<{ before: Instant | null; after: Instant | null }>(EDGES, [scheduleId, from, to]);
  const { before, after } = edges!;
  const segments = await at.query<Of<Segment>>(SEGMENTS_WITHIN, [
    scheduleId,
    before === null ? from : instantText(before),
    after === null ? to : instantText(after),
  ]);
  const cut = { isCutBefore: before !== null, isCutAfter: after !== null };
  return (await gather(at, [scheduleId], segments, cut)).get(scheduleId);
}

async function gather(
  at: Queryable,
  scheduleIds: readonly Uuid[],
  segments: readonly Of<Segment>[],
  cut: { isCutBefore: boolean; isCutAfter: boolean },
): Promise<Map<Uuid, ChainEvidence>> {
  const starts = Map.groupBy(await at.query<Of<ChainStart>>(STARTS, [scheduleIds]), (one) => one.scheduleId);
  const found = Map.groupBy(segments, (one) => one.scheduleId);
  const cursors = await at.query<CursorOf>(CURSORS, [scheduleIds]);
  return new Map(
    cursors.map(({ scheduleId, floorAt, ...cursor }) => [
      scheduleId,
      {
        segments: found.get(scheduleId) ?? [],
        starts: starts.get(scheduleId) ?? [],
        cursor,
        createdAt: instantOf(scheduleId),
        floorAt,
        ...cut,
      },
    ]),
  );
}

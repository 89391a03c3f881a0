import { type Definition, definitionSchema } from "../domain/definition.ts";
import { slotGuard, slotsOf } from "../domain/guard.ts";
import { type ChainEvidence, type Hole, verifyChain } from "../domain/ledger/chain.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import { type Queryable, type Statement, sql } from "./database.ts";
import { readChains, readChainWithin } from "./reads/chains.ts";

/**
 * The invariants of the protocol as queries for the rows that break them, asked in pieces, because no look at a large
 * table may be one statement. `over` says what a piece is, and so what its parameters are:
 *
 *   schedules  $1 uuid[]: whole chains of these schedules
 *   period     $1, $2 timestamptz: runs of nominal instants from (inclusive) to (exclusive)
 *   moment     none: what is open now, which is little
 *
 * A piece is one statement, hence one snapshot: it may be asked while everything runs.
 */
export type Invariant = { name: string; over: "schedules" | "period" | "moment"; statement: Statement };

/** The least id a run of this instant may have; ids sort by time, so a period of runs is a range of ids. */
const firstId = (at: string) =>
  `(lpad(to_hex((extract(epoch from ${at}::timestamptz) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;

const ofSchedules = (id: string, name: string, text: string): Invariant => ({
  name,
  over: "schedules",
  statement: sql(`invariant_${id}`, text),
});
const ofPeriod = (id: string, name: string, text: string): Invariant => ({
  name,
  over: "period",
  statement: sql(`invariant_${id}`, text),
});
const ofMoment = (id: string, name: string, text: string): Invariant => ({
  name,
  over: "moment",
  statement: sql(`invariant_${id}`, text),
});

export const INVARIANTS: readonly Invariant[] = [
  ofMoment(
    "blocked_behind",
    "2: a blocked run waits behind a holder",
    // But for what a failure holds until the resume, or until its schedule has heard of it.
    `select b.schedule_id from live_run b where b.state = 'blocked' and b.held_by <> 'pause'
        and not exists (select 1 from live_run h where h.schedule_id = b.schedule_id and h.guard is not null)
        and not exists (select 1 from outbox o where o.kind = 'schedule' and o.schedule_id = b.schedule_id)`,
  ),
  ofPeriod(
    "result_object",
    "3: a result's object is referenced and matches",
    `select r.id from run r left join object o on o.id = r.result_object
      where r.scheduled_at >= $1 and r.scheduled_at < $2 and r.result_uri is not null
        and (o.state is distinct from 'referenced' or o.sha256 is distinct from r.result_sha256 or o.fence <> r.accepted_fence)`,
  ),
  ofPeriod(
    "referenced_result",
    "3: a referenced object is its run's one result",
    `select o.id from object o left join run r on r.scheduled_at = instant_of(o.run_id) and r.id = o.run_id
      where o.state = 'referenced' and o.run_id >= ${firstId("$1")} and o.run_id < ${firstId("$2")}
        and r.result_object is distinct from o.id`,
  ),
  ofPeriod(
    "fences_of_run",
    "4: fences grow with the attempts of a run",
    `select run_id from (
       select run_id, fence, lag(fence) over (partition by run_id order by n) as before
         from attempt where scheduled_at >= $1 and scheduled_at < $2) a
      where before >= fence`,
  ),
  ofSchedules(
    "fences_of_schedule",
    "4: fences grow with the starts of a schedule",
    `select schedule_id, fence from (
       select r.schedule_id, a.fence, a.started_at,
              max(a.started_at) over (partition by r.schedule_id order by a.fence rows between unbounded preceding and 1 preceding) as before
         from attempt a join run r on r.scheduled_at = a.scheduled_at and r.id = a.run_id
         join schedule_revision v on v.schedule_id = r.schedule_id and v.revision = r.revision
        where r.schedule_id = any($1::uuid[])
          -- Runs that may run side by side start in no order: two claims read the clock and the sequence as they come.
          and v.definition -> 'overlap' ->> 'policy' <> 'allow') s
      where before > started_at`,
  ),
  ofPeriod(
    "fences_once",
    "4: no fence was given twice",
    `select fence from attempt where scheduled_at >= $1 and scheduled_at < $2 group by fence having count(*) > 1`,
  ),
  ofMoment(
    "fence_of_running",
    "4: a running run holds the fence of its newest attempt",
    `select l.id from live_run l join attempt a on a.scheduled_at = l.scheduled_at and a.run_id = l.id and a.n = l.attempt
      where l.state = 'running' and (a.fence <> l.fence or a.ended_at is not null)`,
  ),
  ofPeriod(
    "fence_accepted",
    "4: a run is accepted from its newest attempt",
    `select r.id from run r where r.scheduled_at >= $1 and r.scheduled_at < $2 and r.state = 'succeeded'
        and r.accepted_fence is distinct from (select max(fence) from attempt a where a.scheduled_at = r.scheduled_at and a.run_id = r.id)`,
  ),
  ofPeriod(
    "open_is_live",
    "5: an open run has one live row",
    `select r.id from run r left join live_run l on l.id = r.id
      where r.scheduled_at >= $1 and r.scheduled_at < $2 and r.state = 'open' and l.id is null`,
  ),
  ofMoment(
    "live_is_open",
    "5: only an open run has a live row",
    `select l.id, l.state, r.state as history
       from live_run l left join run r on r.scheduled_at = l.scheduled_at and r.id = l.id
      where r.state is distinct from 'open'`,
  ),
  ofMoment(
    "named_once",
    "5: each queued or retrying run is named by exactly one outbox row",
    `select l.id, l.state, count(o.id)
       from live_run l left join (select id, unnest(runs) as run_id from outbox where kind = 'run') o on o.run_id = l.id
      where l.state in ('queued', 'retrying') group by l.id, l.state having count(o.id) <> 1`,
  ),
  ofMoment(
    "end_awaited",
    "5: an end that a schedule awaits will be told: a run is open, or word was left",
    `select c.schedule_id from schedule_cursor c where c.awaits_end
        and not exists (select 1 from live_run l where l.schedule_id = c.schedule_id)
        and not exists (select 1 from outbox o where o.kind = 'schedule' and o.schedule_id = c.schedule_id)`,
  ),
  ofPeriod(
    "older_attempts",
    "5: an attempt that is not the newest has ended",
    `select a.run_id, a.n from attempt a
      where a.scheduled_at >= $1 and a.scheduled_at < $2 and a.ended_at is null
        and exists (select 1 from attempt b where b.scheduled_at = a.scheduled_at and b.run_id = a.run_id and b.n > a.n)`,
  ),
  ofMoment(
    "usage",
    "6: usage is the number of running rows",
    `select * from (
       select tenant_id, class, sum(running) as counted, sum(real) as real from (
         select tenant_id, class, running, 0 as real from usage
         union all select tenant_id, class, 0, 1 from live_run where state = 'running') both_sides
       group by tenant_id, class) t where counted <> real`,
  ),
  ofPeriod(
    "effects",
    "7: an effect belongs to an accepted result",
    `select e.id from effect e left join run r on r.scheduled_at = instant_of(e.run_id) and r.id = e.run_id
      where e.run_id >= ${firstId("$1")} and e.run_id < ${firstId("$2")} and r.state is distinct from 'succeeded'`,
  ),
];

export const GUARDS_FIT = "2: open runs hold min(open, slots) guards, oldest first";

const OPEN_BY_SCHEDULE = sql(
  "invariant_guards",
  `select l.schedule_id, v.definition::jsonb as definition,
          jsonb_agg(jsonb_build_object('id', l.id, 'guard', l.guard) order by l.scheduled_at) as open
     from live_run l join schedule_cursor c using (schedule_id)
     join schedule_revision v on v.schedule_id = c.schedule_id and v.revision = c.revision
    where l.schedule_id = any($1::uuid[]) and l.held_by <> 'pause'
      and not exists (select 1 from outbox o where o.kind = 'schedule' and o.schedule_id = l.schedule_id)
    group by l.schedule_id, v.definition::jsonb`,
);

type Open = { id: Uuid; guard: Uuid | null };

/**
 * A schedule with n slots and open runs has min(open, n) holders of slots, and the blocked are younger than none of
 * them; a holder of its own id is surplus from an edit, or competes with nobody. Answers the schedules that do not fit.
 */
export async function findUnfitGuards(db: Queryable, scheduleIds: readonly Uuid[]): Promise<object[]> {
  const rows = await db.query<{ schedule_id: Uuid; definition: Definition; open: Open[] }>(OPEN_BY_SCHEDULE, [
    scheduleIds,
  ]);
  return rows.flatMap(({ schedule_id, definition, open }) => {
    const slots = slotsOf(definitionSchema.parse(definition).overlap);
    const blocked = open.filter((run) => run.guard === null).length;
    if (slots === Number.POSITIVE_INFINITY) {
      return blocked > 0 || open.some((run) => run.guard !== run.id) ? [{ schedule_id, slots, open }] : [];
    }
    const seats = new Set(Array.from({ length: slots }, (_, k) => slotGuard(schedule_id, k)));
    const surplus = open.filter((run) => run.guard === run.id).length;
    const seated = open.filter((run) => run.guard !== null && seats.has(run.guard)).length;
    const fits = seated + surplus + blocked === open.length && seated === Math.min(open.length - surplus, slots);
    return fits ? [] : [{ schedule_id, slots, open }];
  });
}

export const CHAINS_HOLD = "1: nominal instants are linked to the one before, or start a chain";

export type BrokenChain = { schedule_id: Uuid } & Hole;

/**
 * Every hole in the chains of these schedules, but for what a rule that could not be computed has left: that was owned up
 * to when it happened. Several statements, so they must be asked within one snapshot.
 */
export async function findBrokenChains(at: Queryable, scheduleIds: readonly Uuid[]): Promise<BrokenChain[]> {
  return [...(await readChains(at, scheduleIds))].flatMap(([id, evidence]) => brokenIn(id, evidence));
}

/** The same for the instants of one schedule in [fromAt, toAt). */
export async function findBrokenChainWithin(
  at: Queryable,
  scheduleId: Uuid,
  fromAt: Instant,
  toAt: Instant,
): Promise<BrokenChain[]> {
  const evidence = await readChainWithin(at, scheduleId, fromAt, toAt);
  return evidence === undefined ? [] : brokenIn(scheduleId, evidence);
}

function brokenIn(schedule_id: Uuid, evidence: ChainEvidence): BrokenChain[] {
  const broken = verifyChain(evidence).holes.filter((hole) => hole.kind !== "not-computed");
  return broken.map((hole) => ({ schedule_id, ...hole }));
}

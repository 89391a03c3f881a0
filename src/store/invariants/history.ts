import { IN_PIECE, ofRuns, ofSchedules, ofStarts } from "./invariant.ts";

/** What must hold of history: of results, fences, attempts and effects. Ids begin with their instant, so a piece is a range of ids. */
export const OF_HISTORY = [
  ofSchedules(
    "next-known",
    "1: an active schedule knows its next instant, or why not",
    `select c.schedule_id from schedule s join schedule_cursor c on c.schedule_id = s.id
      where c.schedule_id = any($1::uuid[]) and s.status = 'active'
        and c.next_due_at is null and c.fault is null and not c.awaits_end`,
  ),
  ofRuns(
    "result-object",
    "3: a result's object is referenced and matches, as long as results are kept",
    `select r.id, o.id as object, o.state from run r left join object o on o.id = r.result_object
      where ${IN_PIECE} and r.result_uri is not null
        and case when o.id is null or o.state in ('deleting', 'deleted')
              -- Kept long enough, and forgotten: a day is the least that may be configured.
              then r.finished_at > clock_timestamp() - interval '1 day'
              else o.state <> 'referenced' or o.run_id <> r.id or o.fence is distinct from r.accepted_fence
                or (o.sha256, o.size, o.uri, o.version) is distinct from (r.result_sha256, r.result_size, r.result_uri, r.result_version)
            end`,
  ),
  ofRuns(
    "one-result",
    "3: a referenced object is its run's one result",
    `select o.id, o.run_id from object o
       left join run r on r.scheduled_at = instant_of(o.run_id) and r.id = o.run_id
                      and r.scheduled_at >= $1 and r.scheduled_at <= $2
      where o.run_id >= $3 and o.run_id < $4 and o.state = 'referenced' and o.kind = 'output'
        and r.result_object is distinct from o.id`,
  ),
  ofRuns(
    "fences-of-run",
    "4: fences grow with the attempts of a run",
    `select run_id, n, fence, before from (
       select run_id, n, fence, lag(fence) over (partition by run_id order by n) as before
         from attempt where scheduled_at >= $1 and scheduled_at <= $2 and run_id >= $3 and run_id < $4) a
      where before >= fence`,
  ),
  ofStarts(
    "fences-of-schedule",
    "4: fences grow with the starts of a schedule, and none is given twice",
    // Runs that may run side by side start in no order: two claims read the clock and the sequence as they come.
    `with kinds as materialized (
       select schedule_id, revision, definition -> 'overlap' ->> 'policy' = 'allow' as side_by_side
         from schedule_revision where schedule_id = any($1::uuid[]))
     select schedule_id, run_id, fence from (
       select r.schedule_id, r.id as run_id, a.fence, a.started_at, k.side_by_side,
              lag(a.fence) over fences as before,
              max(a.started_at) filter (where not k.side_by_side)
                over (fences rows between unbounded preceding and 1 preceding) as started_before
         from run r
         join attempt a on a.scheduled_at = r.scheduled_at and a.run_id = r.id
                       and ($2::timestamptz is null or a.scheduled_at >= $2 and a.scheduled_at <= $3)
         join kinds k on k.schedule_id = r.schedule_id and k.revision = r.revision
        where r.schedule_id = any($1::uuid[])
          and ($2::timestamptz is null or r.scheduled_at >= $2 and r.scheduled_at <= $3)
       window fences as (partition by r.schedule_id order by a.fence)) s
      where fence = before or (started_before > started_at and not side_by_side)`,
  ),
  ofRuns(
    "fences-to-come",
    "4: no fence is above those that are still to be given",
    `select a.run_id, a.n, a.fence from attempt a, authority_epoch e
      where a.scheduled_at >= $1 and a.scheduled_at <= $2 and a.run_id >= $3 and a.run_id < $4
        and a.fence > (e.epoch::bigint << 40) + (select last_value from fence_seq)`,
  ),
  ofRuns(
    "fence-accepted",
    "4: a run is accepted from its newest attempt",
    `select r.id, r.accepted_fence from run r where ${IN_PIECE} and r.state = 'succeeded'
        and r.accepted_fence is distinct from (select max(fence) from attempt a where a.scheduled_at = r.scheduled_at and a.run_id = r.id)`,
  ),
  ofRuns(
    "open-is-live",
    "5: an open run has one live row",
    `select r.id, r.schedule_id from run r left join live_run l on l.id = r.id
      where ${IN_PIECE} and r.state = 'open' and l.id is null`,
  ),
  ofRuns(
    "older-attempts",
    "5: an attempt that is not the newest has ended",
    `select run_id, n from (
       select run_id, n, ended_at, max(n) over (partition by run_id) as newest
         from attempt where scheduled_at >= $1 and scheduled_at <= $2 and run_id >= $3 and run_id < $4) a
      where ended_at is null and n < newest`,
  ),
  ofRuns(
    "effects",
    "7: an effect belongs to an accepted result, and is called by its own action",
    `select e.id, e.run_id, e.action_id from effect e
       left join run r on r.scheduled_at = instant_of(e.run_id) and r.id = e.run_id
                      and r.scheduled_at >= $1 and r.scheduled_at <= $2
      where e.run_id >= $3 and e.run_id < $4
        and (r.state is distinct from 'succeeded' or e.object_id <> r.result_object
             or left(e.action_id, length(e.name) + 5) <> e.name || '-run_')`,
  ),
  ofRuns(
    "effect-attempts",
    "7: an effect is being sent by its newest attempt, or by none",
    `select e.id, e.state, e.attempts, a.attempts as recorded, a.open
       from effect e
      cross join lateral (
        select count(*)::int as attempts, count(*) filter (where s.ended_at is null)::int as open,
               bool_and(s.n = e.attempts and s.fence = e.fence) filter (where s.ended_at is null) as is_newest
          from effect_attempt s where s.effect_id = e.id) a
      where $1::timestamptz <= $2::timestamptz and e.run_id >= $3 and e.run_id < $4
        and (a.attempts <> e.attempts or a.open <> (e.state = 'sending')::int or not a.is_newest)`,
  ),
] as const;

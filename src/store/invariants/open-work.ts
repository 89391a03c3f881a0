import { ofMoment } from "./invariant.ts";

/** What must hold of what is open now. */
export const OF_OPEN_WORK = [
  ofMoment(
    "blocked-behind",
    "2: a blocked run waits behind a holder",
    // But for what a failure holds until the resume, or until its schedule has heard of it.
    `select b.schedule_id, b.id from live_run b where b.state = 'blocked' and b.held_by <> 'pause'
        and not exists (select from live_run h where h.schedule_id = b.schedule_id and h.guard is not null)
        and not exists (select from outbox o where o.kind = 'schedule' and o.schedule_id = b.schedule_id)`,
  ),
  ofMoment(
    "overtaken",
    "2: of the blocked, the oldest is next",
    // Of runs that a rule made. What a person asks for has an order of its own: a run-now does not wait behind what a
    // failure holds, and a backfill or a replay is older than what it waits behind.
    `select b.schedule_id, b.id, h.id as overtaken_by
       from live_run b join live_run h on h.schedule_id = b.schedule_id
       join run rb on rb.scheduled_at = b.scheduled_at and rb.id = b.id
       join run rh on rh.scheduled_at = h.scheduled_at and rh.id = h.id
      where b.state = 'blocked' and b.held_by = 'overlap' and h.guard is not null
        and h.scheduled_at > b.scheduled_at and h.admitted_at >= b.budget_from
        and rb.trigger in ('schedule', 'catch-up') and rh.trigger in ('schedule', 'catch-up')`,
  ),
  ofMoment(
    "fence-of-running",
    "4: a running run holds the fence of its newest attempt, and no other run has an attempt under way",
    `select l.id, l.state, l.fence, a.fence as attempted
       from live_run l left join attempt a on a.scheduled_at = l.scheduled_at and a.run_id = l.id and a.n = l.attempt
      where case when l.state = 'running' then a.fence is distinct from l.fence or a.ended_at is not null
                 else a.fence is not null and a.ended_at is null end`,
  ),
  ofMoment(
    "live-is-open",
    "5: only an open run has a live row",
    `select l.id, l.state, r.state as history
       from live_run l left join run r on r.scheduled_at = l.scheduled_at and r.id = l.id
      where r.state is distinct from 'open'`,
  ),
  ofMoment(
    "named-once",
    "5: each queued or retrying run is named by exactly one outbox row",
    `select l.id, l.state, count(o.id) as rows
       from live_run l left join (select id, unnest(runs) as run_id from outbox where kind = 'run') o on o.run_id = l.id
      where l.state in ('queued', 'retrying') group by l.id, l.state having count(o.id) <> 1`,
  ),
  ofMoment(
    "end-awaited",
    "5: an end that a schedule awaits will be told: a run is open, or word was left",
    `select c.schedule_id from schedule_cursor c where c.awaits_end
        and not exists (select from live_run l where l.schedule_id = c.schedule_id)
        and not exists (select from outbox o where o.kind = 'schedule' and o.schedule_id = c.schedule_id)`,
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
] as const;

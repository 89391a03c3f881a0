import type pg from "pg";
import { type Definition, definitionSchema } from "../../src/domain/definition.ts";
import { slotGuard, slotsOf } from "../../src/domain/guard.ts";

/** The seven invariants of the protocol, as far as the tables tell. Throws with the first few offenders of the first that is broken. */
export async function checkInvariants(admin: pg.Pool): Promise<void> {
  for (const [name, text] of Object.entries(QUERIES)) {
    const { rows } = await admin.query(text);
    if (rows.length > 0) throw new Error(`invariant broken: ${name}: ${show(rows)}`);
  }
  const broken = await unfitGuards(admin);
  if (broken.length > 0)
    throw new Error(`invariant broken: open runs hold min(open, slots) guards, oldest first: ${show(broken)}`);
}

function show(rows: readonly unknown[]): string {
  return JSON.stringify(rows.slice(0, 5), (_, value) => (typeof value === "bigint" ? `${value}` : value));
}

/** Links of every schedule's chain: runs and skips of its rule, and ranges. */
const CHAIN = `
  select schedule_id, scheduled_at as from_at, scheduled_at as to_at, prev_scheduled_at
    from run where trigger in ('schedule', 'catch-up')
  union all
  select schedule_id, from_at, to_at, prev_scheduled_at from skip_range`;

const QUERIES: Readonly<Record<string, string>> = {
  "1: nominal instants are linked to the one before, or start a chain": `
    select * from (
      select schedule_id, from_at, to_at, prev_scheduled_at,
             lag(to_at) over (partition by schedule_id order by from_at, to_at) as before
        from (${CHAIN}) links) chain
     where (prev_scheduled_at is not null and prev_scheduled_at is distinct from before)
        or (before is not null and before >= from_at)`,
  "1: a chain starts only at creation, an edit or a resume": `
    select schedule_id, count(*) from (${CHAIN}) links where prev_scheduled_at is null
     group by schedule_id
    having count(*) > (select count(*) from schedule_revision v where v.schedule_id = links.schedule_id)`,
  "1: the cursor stands after the newest link": `
    select c.schedule_id, c.last_nominal_at, c.next_run_at, max(links.to_at) as newest
      from schedule_cursor c join (${CHAIN}) links using (schedule_id)
     group by c.schedule_id, c.last_nominal_at, c.next_run_at
    having (c.last_nominal_at is not null and c.last_nominal_at <> max(links.to_at)) or c.next_run_at <= max(links.to_at)`,
  "2: a blocked run waits behind a holder": `
    select b.schedule_id from live_run b where b.state = 'blocked'
       and not exists (select 1 from live_run h where h.schedule_id = b.schedule_id and h.guard is not null)`,
  "3: a result's object is referenced and matches": `
    select r.id from run r left join object o on o.id = r.result_object
     where r.result_uri is not null
       and (o.state is distinct from 'referenced' or o.sha256 is distinct from r.result_sha256 or o.fence <> r.accepted_fence)`,
  "3: a referenced object is its run's one result": `
    select o.id from object o left join run r on r.result_object = o.id where o.state = 'referenced' and r.id is null`,
  "4: fences grow with the attempts of a run": `
    select run_id from (select run_id, fence, lag(fence) over (partition by run_id order by n) as before from attempt) a
     where before >= fence`,
  "4: fences grow with the starts of a schedule": `
    select schedule_id, fence from (
      select r.schedule_id, a.fence, a.started_at,
             max(a.started_at) over (partition by r.schedule_id order by a.fence rows between unbounded preceding and 1 preceding) as before
        from attempt a join run r on r.scheduled_at = a.scheduled_at and r.id = a.run_id
       where r.schedule_id is not null) s
     where before > started_at`,
  "4: no fence was given twice": "select fence from attempt group by fence having count(*) > 1",
  "4: a running run holds the fence of its newest attempt": `
    select l.id from live_run l join attempt a on a.scheduled_at = l.scheduled_at and a.run_id = l.id and a.n = l.attempt
     where l.state = 'running' and (a.fence <> l.fence or a.ended_at is not null)`,
  "4: a run is accepted from its newest attempt": `
    select r.id from run r where r.state = 'succeeded'
       and r.accepted_fence is distinct from (select max(fence) from attempt a where a.scheduled_at = r.scheduled_at and a.run_id = r.id)`,
  "5: an open run has one live row, and only an open run": `
    select coalesce(r.id, l.id) as id, r.state, l.state as live
      from run r full join live_run l on l.id = r.id
     where (r.state = 'open') is distinct from (l.id is not null)`,
  "5: each queued or retrying run is named by exactly one outbox row": `
    select l.id, l.state, count(o.id)
      from live_run l left join (select id, unnest(runs) as run_id from outbox where kind = 'run') o on o.run_id = l.id
     where l.state in ('queued', 'retrying') group by l.id, l.state having count(o.id) <> 1`,
  "5: an attempt that is not the newest has ended": `
    select a.run_id, a.n from attempt a
     where a.ended_at is null
       and exists (select 1 from attempt b where b.scheduled_at = a.scheduled_at and b.run_id = a.run_id and b.n > a.n)`,
  "6: usage is the number of running rows": `
    select * from (
      select tenant_id, class, sum(running) as counted, sum(real) as real from (
        select tenant_id, class, running, 0 as real from usage
        union all select tenant_id, class, 0, 1 from live_run where state = 'running') both_sides
      group by tenant_id, class) t where counted <> real`,
  "7: an effect belongs to an accepted result": `
    select e.id from effect e left join run r on r.id = e.run_id where r.state is distinct from 'succeeded'`,
};

type Open = { id: string; guard: string | null; scheduled_at: Date };

/**
 * A schedule with n slots and open runs has min(open, n) holders of slots, and the blocked are younger than none of
 * them; a holder of its own id is surplus from an edit, or competes with nobody.
 */
async function unfitGuards(admin: pg.Pool): Promise<object[]> {
  const { rows } = await admin.query<{ schedule_id: string; definition: Definition; open: Open[] }>(`
    select l.schedule_id, v.definition,
           jsonb_agg(jsonb_build_object('id', l.id, 'guard', l.guard) order by l.scheduled_at) as open
      from live_run l join schedule_cursor c using (schedule_id)
      join schedule_revision v on v.schedule_id = c.schedule_id and v.revision = c.revision
     group by l.schedule_id, v.definition`);
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

import type pg from "pg";

export type Chains = {
  /** Nominal instants that the rules name up to where each cursor stands, and what became of them. */
  instants: number;
  runs: number;
  skips: number;
  inRanges: number;
  /** Instants that nothing tells of (or that are told twice), by schedules whose sums do not come out. */
  unaccounted: number;
  /** Links that do not name the one before. */
  broken: number;
  /** Runs that did not succeed, and runs with more than one attempt. */
  notSucceeded: number;
  doubled: number;
};

/**
 * Accounts for every nominal instant of schedules whose rules are as regular as `periodMs` says, from where their
 * chains began to where their cursors stand.
 */
export async function accountForChains(admin: pg.Pool, periodMs: (name: string) => number): Promise<Chains> {
  const { rows } = await admin.query<{
    name: string;
    first: number;
    last: number | null;
    next: number;
    runs: number;
    skips: number;
    spans: [from: number, to: number, instants: number | null][] | null;
  }>(
    `with r as (select schedule_id, count(*) filter (where state <> 'skipped')::int as runs,
                       count(*) filter (where state = 'skipped')::int as skips
                  from run group by schedule_id),
          k as (select schedule_id, json_agg(json_build_array(ms(from_at), ms(to_at), instants)) as spans
                  from skip_range group by schedule_id)
     select s.name, ms(c.chain_started_at) as first, ms(c.last_nominal_at) as last, ms(c.next_run_at) as next,
            coalesce(r.runs, 0) as runs, coalesce(r.skips, 0) as skips, k.spans
       from schedule s join schedule_cursor c on c.schedule_id = s.id
       left join r on r.schedule_id = s.id left join k on k.schedule_id = s.id`.replaceAll(
      /ms\(([\w.]+)\)/g,
      "(extract(epoch from $1) * 1000)::float8",
    ),
  );
  const chains = { instants: 0, runs: 0, skips: 0, inRanges: 0, unaccounted: 0 };
  for (const { name, first, last, next, runs, skips, spans } of rows) {
    const period = periodMs(name);
    const expected = last === null ? 0 : (last - first) / period + 1;
    let inRanges = 0;
    for (const [from, to, instants] of spans ?? []) {
      const exact = (to - from) / period + 1;
      inRanges += exact;
      if (instants !== null && instants !== exact) chains.unaccounted += Math.abs(instants - exact);
    }
    chains.instants += expected;
    chains.runs += runs;
    chains.skips += skips;
    chains.inRanges += inRanges;
    chains.unaccounted += Math.abs(expected - runs - skips - inRanges);
    if (last !== null && next !== last + period) chains.unaccounted++;
  }
  const { rows: links } = await admin.query<{ broken: number }>(
    `with link as (select schedule_id, scheduled_at as from_at, scheduled_at as to_at, prev_scheduled_at from run
                   union all select schedule_id, from_at, to_at, prev_scheduled_at from skip_range)
     select count(*)::int as broken from (
       select prev_scheduled_at, lag(to_at) over (partition by schedule_id order by from_at) as before from link) l
      where prev_scheduled_at is distinct from before`,
  );
  const { rows: ends } = await admin.query<{ not_succeeded: number; doubled: number }>(
    `select (select count(*) from run where state not in ('succeeded', 'skipped'))::int as not_succeeded,
            (select count(*) from (select run_id from attempt group by run_id having count(*) > 1) twice)::int as doubled`,
  );
  return { ...chains, broken: links[0]!.broken, notSucceeded: ends[0]!.not_succeeded, doubled: ends[0]!.doubled };
}

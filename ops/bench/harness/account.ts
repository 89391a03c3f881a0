import type pg from "pg";

export type Account = {
  runs: number;
  lost: number;
  doubled: number;
  seconds: number;
  runsPerSecond: number;
  dueToStartMs: { p50: number; p99: number; max: number };
};

/** Waits until nothing is open and `runs` have ended, or until `withinMs`; polls, since this is a measurement. */
export async function waitForEnd(admin: pg.Pool, runs: number, withinMs: number): Promise<void> {
  const startedMs = performance.now();
  for (;;) {
    // The live table is small; counting history while it is written would be part of the measurement.
    const { rows } = await admin.query(
      `select case when exists (select 1 from live_run) then true
                   else exists (select 1 from schedule_cursor where next_due_at <= statement_timestamp()) end as busy`,
    );
    if (!rows[0].busy) {
      const ended = (await admin.query("select count(*)::int as n from run where state <> 'open'")).rows[0].n;
      if (ended >= runs) return;
    }
    if (performance.now() - startedMs > withinMs) return;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** What became of the runs that were wanted: each succeeded exactly once, in its first attempt, or is unaccounted. */
export async function accountFor(admin: pg.Pool, wanted: number, dueAt: Date): Promise<Account> {
  const { rows } = await admin.query(
    `select count(*)::int as runs,
            count(*) filter (where state = 'succeeded')::int as succeeded,
            (select count(*) from (select run_id from attempt group by run_id having count(*) > 1) twice)::int as doubled,
            extract(epoch from max(finished_at) - min(due_at)) as seconds,
            percentile_cont(array[0.5, 0.99, 1]) within group (order by
              extract(epoch from started_at - greatest(due_at, admitted_at)) * 1000) as from_admitted,
            percentile_cont(array[0.5, 0.99, 1]) within group (order by
              extract(epoch from started_at - due_at) * 1000) as late
       from run where due_at = $1`,
    [dueAt.toISOString()],
  );
  const row = rows[0];
  const seconds = Number(row.seconds);
  const [p50, p99, max] = (row.late as number[]).map((ms) => Math.round(ms * 10) / 10) as [number, number, number];
  return {
    runs: row.runs,
    lost: wanted - row.succeeded,
    doubled: row.doubled,
    seconds: Math.round(seconds * 1000) / 1000,
    runsPerSecond: Math.round(row.runs / seconds),
    dueToStartMs: { p50, p99, max },
  };
}

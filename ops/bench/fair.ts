import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import { definitionSchema } from "../../src/domain/definition.ts";
import { waitForEnd } from "./harness/account.ts";
import { plantSchedules, plantTenants } from "./harness/population.ts";
import { createProcesses } from "./harness/processes.ts";
import { finishSchedules, plantRecurring, type Recurring } from "./harness/recurring.ts";
import { startBenchServers } from "./harness/servers.ts";

export type FairOptions = {
  /** Runs of the big tenant that wait when the measurement begins; it has no limit. */
  queued: number;
  /** Tenants with ten runs a second each. */
  small: number;
  seconds: number;
  /** How long every run holds its slot. */
  runMs: number;
  workers: number;
  /** Of all workers together. */
  slots: number;
};

export const FAIR: FairOptions = { queued: 100_000, small: 20, seconds: 30, runMs: 400, workers: 2, slots: 200 };

const RUNS_PER_SECOND = 10;
/** Executed before there is anything to wait for: how long runs take is known then, as it is on any other day. */
const WARM_UP_RUNS = 1_000;
const WITHIN_MS = 300_000;

/**
 * One tenant with a long backlog, and many that want little and want it now. Measured while the backlog lasts: how late the
 * small ones start, and whether every tenant had the slots it is entitled to.
 */
export async function fair(options: FairOptions) {
  const servers = await startBenchServers();
  try {
    const { admin } = servers;
    await plantTenants(admin, options.small + 1);
    const { rows } = await admin.query<{ id: string }>("select id from tenant order by name");
    // The first one's schedules are planted as those of one tenant.
    const [big, ...small] = rows.map((row) => row.id);
    const said = (what: string) => process.env.BENCH_PROGRESS && console.error(new Date().toISOString(), what);
    const processes = createProcesses(servers);
    await processes.start("scheduler,relay,sweeper");
    const slots = String(options.slots / options.workers);
    for (let n = 0; n < options.workers; n++) await processes.start("worker", { PUNCTUAL_SLOTS_SHORT: slots });

    await plantSchedules(admin, { schedules: WARM_UP_RUNS, tenants: 1, dueAt: new Date(), sleepMs: options.runMs });
    said("warm-up planted");
    await waitForEnd(admin, WARM_UP_RUNS, WITHIN_MS);
    said("warm");
    // Workers tell every five seconds how long their runs take.
    await sleep(6_000);
    // Some of it is executed while the rest is still being materialized.
    const backlog = options.queued + Math.ceil((15 * 1000 * options.slots) / options.runMs);
    const dueAt = new Date(Math.ceil(Date.now() / 1000) * 1000 + 10_000 + backlog / 3);
    await plantSchedules(admin, { schedules: backlog, tenants: 1, dueAt, sleepMs: options.runMs });
    if (Date.now() > dueAt.getTime()) throw new Error("preparing took too long");
    said("backlog planted");
    await sleep(dueAt.getTime() - Date.now());
    await settled(admin);
    said("backlog settled");

    const firstAt = Math.ceil(Date.now() / 1000) * 1000 + 3_000;
    await plantRecurring(
      admin,
      small.flatMap((tenantId, n) => tenTimesASecond(n, tenantId, firstAt, options.runMs)),
    );
    const fromAt = firstAt + 2_000;
    const toAt = fromAt + options.seconds * 1000;
    await sleep(fromAt - Date.now());
    const queuedAtStart = await queuedOf(admin, big!);
    await sleep(toAt - Date.now());
    const queuedAtEnd = await queuedOf(admin, big!);
    await finishSchedules(admin);
    await sleep(2_000);
    said("measured");
    processes.hurry();
    await waitForEnd(admin, WARM_UP_RUNS + backlog, WITHIN_MS);
    const cpuMs = processes.cpu();
    await processes.stop();

    const window = [new Date(fromAt).toISOString(), new Date(toAt).toISOString()];
    const latenesses = await lateness(admin, big!, window);
    const used = await slotsUsed(admin, window);
    const satisfaction = judge(used, big!, options);
    const account = await accountFor(admin, WARM_UP_RUNS + backlog);
    return {
      bench: "fair" as const,
      runs: account.runs,
      runsPerSecond: Math.round((used.reduce((sum, one) => sum + one.slots, 0) * 1000) / options.runMs),
      /** Of the small tenants' runs that were due in the measured seconds. */
      dueToStartMs: latenesses,
      smallTenantsP99Ms: latenesses.p99,
      jain: jain(satisfaction),
      lost: account.lost,
      doubled: account.doubled,
      ok: account.lost === 0 && account.doubled === 0 && queuedAtEnd > 0 && latenesses.runs > 0,
      slots: {
        all: round(used.reduce((sum, one) => sum + one.slots, 0)),
        big: round(used.find((one) => one.tenantId === big)?.slots ?? 0),
        bigEntitled: round(options.slots - options.small * demandOf(options)),
        smallDemand: round(demandOf(options)),
        smallLeast: round(Math.min(...small.map((id) => used.find((one) => one.tenantId === id)?.slots ?? 0))),
      },
      queuedAtStart,
      queuedAtEnd,
      settings: { ...options, ...servers.settings, warmup: WARM_UP_RUNS, weights: 1, cpuMs },
    };
  } finally {
    await servers.stop();
  }
}

function definitionOf(rule: object) {
  return definitionSchema.parse({
    rule,
    job: { kind: "function", name: "bench.sleep" },
    overlap: { policy: "allow" },
    misfire: { policy: "all", graceMs: 60_000 },
  });
}

function tenTimesASecond(tenant: number, tenantId: string, firstAt: number, runMs: number): Recurring[] {
  return Array.from({ length: RUNS_PER_SECOND }, (_, n) => {
    // Spread over the second, no two tenants alike.
    const offsetMs = Math.floor((n * 1000) / RUNS_PER_SECOND) + tenant * 5;
    return {
      name: `small ${tenant}.${n}`,
      definition: definitionOf({ kind: "interval", everyMs: 1_000, anchorAt: offsetMs }),
      firstAt: new Date(firstAt + offsetMs),
      tenantId,
      payload: { ms: runMs },
    };
  });
}

/** Waits until nothing that is due waits to become a run. */
async function settled(admin: pg.Pool): Promise<void> {
  const untilMs = performance.now() + WITHIN_MS;
  while (performance.now() < untilMs) {
    const { rows } = await admin.query(
      "select exists (select 1 from schedule_cursor where next_due_at <= statement_timestamp()) as behind",
    );
    if (!rows[0].behind) return;
    await sleep(200);
  }
  throw new Error("the backlog did not become runs in time");
}

async function queuedOf(admin: pg.Pool, tenantId: string): Promise<number> {
  const { rows } = await admin.query(
    "select count(*)::int as n from live_run where tenant_id = $1 and state = 'queued'",
    [tenantId],
  );
  return rows[0].n;
}

async function lateness(admin: pg.Pool, big: string, window: readonly string[]) {
  const { rows } = await admin.query<{ runs: number; late: number[] | null }>(
    `select count(*)::int as runs, percentile_cont(array[0.5, 0.99, 1]) within group (
              order by extract(epoch from started_at - due_at) * 1000) as late
       from run where tenant_id <> $1 and due_at >= $2 and due_at < $3`,
    [big, ...window],
  );
  const [p50 = 0, p99 = 0, max = 0] = (rows[0]!.late ?? []).map(round);
  return { runs: rows[0]!.runs, p50, p99, max };
}

type Used = { tenantId: string; slots: number };

/** Slots that each tenant held in the measured seconds, on average. */
async function slotsUsed(admin: pg.Pool, window: readonly string[]): Promise<Used[]> {
  const { rows } = await admin.query<Used>(
    `select tenant_id as "tenantId",
            (sum(extract(epoch from least(finished_at, $2::timestamptz) - greatest(started_at, $1::timestamptz)))
              / extract(epoch from $2::timestamptz - $1::timestamptz))::float8 as slots
       from run where started_at < $2 and finished_at > $1 group by tenant_id`,
    [...window],
  );
  return rows;
}

/** Slots that a small tenant can use: it has no more runs. */
function demandOf(options: FairOptions): number {
  return (RUNS_PER_SECOND * options.runMs) / 1000;
}

/**
 * What each tenant had of what it is entitled to. Max-min fairness: small tenants want less than an equal share, so they
 * are entitled to all that they want; the big one is entitled to every slot that they leave. More than that is not better.
 */
function judge(used: readonly Used[], big: string, options: FairOptions): number[] {
  const demand = demandOf(options);
  const entitled = (tenantId: string) => (tenantId === big ? options.slots - options.small * demand : demand);
  const shares = used.map(({ tenantId, slots }) => Math.min(1, slots / entitled(tenantId)));
  // Whoever held nothing at all is not in the table.
  return [...shares, ...Array.from({ length: options.small + 1 - used.length }, () => 0)];
}

function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, one) => total + one, 0);
  const squares = shares.reduce((total, one) => total + one ** 2, 0);
  return squares === 0 ? 0 : Math.round((sum ** 2 / (shares.length * squares)) * 10_000) / 10_000;
}

/** Every schedule's instants are runs without a gap, each of which succeeded in its first attempt. */
async function accountFor(admin: pg.Pool, wanted: number) {
  const { rows } = await admin.query<{
    runs: number;
    once: number;
    notSucceeded: number;
    gaps: number;
    doubled: number;
  }>(
    `select count(*)::int as runs, count(*) filter (where s.name not like 'small %')::int as once,
            count(*) filter (where r.state <> 'succeeded')::int as "notSucceeded",
            (select count(*)::int from run where prev_scheduled_at is not null
                and scheduled_at - prev_scheduled_at <> interval '1 second') as gaps,
            (select count(*)::int from (select run_id from attempt group by run_id having count(*) > 1) twice) as doubled
       from run r join schedule s on s.id = r.schedule_id`,
  );
  const { runs, once, notSucceeded, gaps, doubled } = rows[0]!;
  return { runs, lost: wanted - once + notSucceeded + gaps, doubled };
}

function round(value: number): number {
  return Math.round(value * 10) / 10;
}

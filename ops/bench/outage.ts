import type pg from "pg";
import { type Definition, definitionSchema } from "../../src/domain/definition.ts";
import { accountForChains } from "./harness/chains.ts";
import { plantTenants } from "./harness/population.ts";
import { createProcesses } from "./harness/processes.ts";
import { finishSchedules, plantRecurring, type Recurring } from "./harness/recurring.ts";
import { startBenchServers } from "./harness/servers.ts";

export type OutageOptions = {
  tenants: number;
  workers: number;
  slots: number;
  /** Minutely schedules that nobody looked at for two days. */
  schedules: number;
  /** Schedules beside them that are due every second while the others are caught up. */
  onTime: number;
};

export const OUTAGE: OutageOptions = { tenants: 20, workers: 2, slots: 200, schedules: 10_000, onTime: 500 };

const MINUTE = 60_000;
const AWAY_MS = 2 * 24 * 60 * MINUTE;
const MAX_CATCH_UP = 100;
const WITHIN_MS = 240_000;
/** From planting to the first instant of what is on time: the processes start meanwhile. */
const LEAD_MS = 6_000;
/** Of ten schedules so many let everything go but the newest, so many let all go, the rest run a hundred of their instants. */
const POLICIES = ["latest", "latest", "latest", "latest", "latest", "latest", "skip", "skip", "skip", "all"] as const;

/**
 * The whole system comes back after two days: schedules of every minute are caught up, while others go on being due
 * every second. Measured is what the outage of the ones costs the others.
 */
export async function outage(options: OutageOptions) {
  const servers = await startBenchServers();
  try {
    const { admin } = servers;
    await plantTenants(admin, options.tenants);
    const startsAt = Math.ceil(Date.now() / 1000) * 1000;
    const onTimeAt = startsAt + LEAD_MS;
    await plantRecurring(admin, [
      ...missed(options.schedules, startsAt - AWAY_MS),
      ...regular(options.onTime, onTimeAt),
    ]);
    const processes = createProcesses(servers);
    for (let n = 0; n < options.workers; n++) {
      await processes.start("worker", { PUNCTUAL_SLOTS_SHORT: String(options.slots) });
    }
    const backAt = Date.now();
    await processes.start("scheduler,relay,sweeper");
    const { settledAt, executedAt } = await recovery(admin);
    await stopSchedules(admin);
    const cpuMs = processes.cpu();
    const passes = await processes.stop();
    const chains = await accountForChains(admin, (name) => (name.startsWith("missed") ? MINUTE : 1_000));
    const onTime = await lateness(admin, onTimeAt, executedAt);
    const lost = chains.notSucceeded + chains.unaccounted + chains.broken;
    const seconds = (executedAt - backAt) / 1000;
    return {
      bench: "outage" as const,
      runs: chains.runs,
      runsPerSecond: Math.round(chains.runs / seconds),
      /** Of the schedules that go on being due every second. */
      dueToStartMs: onTime,
      lost,
      doubled: chains.doubled,
      ok: lost === 0 && chains.doubled === 0 && executedAt !== Number.POSITIVE_INFINITY,
      caughtUp: { materializedAfterMs: settledAt - backAt, executedAfterMs: executedAt - backAt },
      scannerPassMs: passes.scanner,
      instants: chains,
      settings: { ...options, ...servers.settings, maxCatchUp: MAX_CATCH_UP, cpuMs },
    };
  } finally {
    await servers.stop();
  }
}

function definitionOf(rule: Definition["rule"], misfire: Partial<Definition["misfire"]>): Definition {
  return definitionSchema.parse({
    rule,
    job: { kind: "function", name: "bench.noop" },
    overlap: { policy: "allow" },
    misfire,
  });
}

/** Spread over the seconds of the minute, as a minute of many tenants is. */
function missed(count: number, lastAt: number): Recurring[] {
  const minuteAt = Math.floor(lastAt / MINUTE) * MINUTE;
  return Array.from({ length: count }, (_, n) => {
    const second = n % 60;
    const expression = `${second} * * * * *`;
    const policy = POLICIES[Math.floor(n / 60) % POLICIES.length]!;
    const rule = { kind: "cron", expression, seconds: true, zone: "Etc/UTC" } as const;
    return {
      name: `missed ${n}`,
      definition: definitionOf(rule, { policy, maxCatchUp: MAX_CATCH_UP }),
      firstAt: new Date(minuteAt + MINUTE + second * 1000),
    };
  });
}

function regular(count: number, firstAt: number): Recurring[] {
  const definition = definitionOf({ kind: "interval", everyMs: 1_000, anchorAt: 0 }, { policy: "all" });
  return Array.from({ length: count }, (_, n) => ({ name: `regular ${n}`, definition, firstAt: new Date(firstAt) }));
}

/** When no cursor is behind any more, and when all that was caught up has been executed (epoch ms; infinite: it was not). */
async function recovery(admin: pg.Pool): Promise<{ settledAt: number; executedAt: number }> {
  const untilMs = performance.now() + WITHIN_MS;
  let settledAt = Number.POSITIVE_INFINITY;
  while (performance.now() < untilMs) {
    const { rows } = await admin.query(
      `select exists (select 1 from schedule_cursor where next_due_at <= statement_timestamp() - interval '5 seconds') as behind,
              exists (select 1 from live_run where lane = 2) as late`,
    );
    if (!rows[0].behind) settledAt = Math.min(settledAt, Date.now());
    if (!rows[0].behind && !rows[0].late) return { settledAt, executedAt: Date.now() };
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  return { settledAt, executedAt: Number.POSITIVE_INFINITY };
}

/** Nothing becomes due any more; what is open ends. */
async function stopSchedules(admin: pg.Pool): Promise<void> {
  await finishSchedules(admin);
  const untilMs = performance.now() + 30_000;
  while (performance.now() < untilMs) {
    const { rows } = await admin.query("select exists (select 1 from live_run) as live");
    if (!rows[0].live) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Due to start (and to its run being there), of what was due every second while the others were caught up; in ms. */
async function lateness(admin: pg.Pool, fromAt: number, toAt: number) {
  const percentiles = (until: string) =>
    `percentile_cont(array[0.5, 0.99, 1]) within group (order by extract(epoch from ${until} - r.due_at) * 1000)`;
  const { rows } = await admin.query<{ runs: number; started: number[] | null; born: number[] | null }>(
    `select count(*)::int as runs, ${percentiles("r.started_at")} as started, ${percentiles("r.materialized_at")} as born
       from run r join schedule s on s.id = r.schedule_id
      where s.name like 'regular %' and r.due_at >= $1 and r.due_at <= $2`,
    [new Date(fromAt).toISOString(), new Date(Math.min(toAt, Date.now())).toISOString()],
  );
  const shown = (all: number[] | null) => {
    const [p50 = null, p99 = null, max = null] = (all ?? []).map((ms) => Math.round(ms * 10) / 10);
    return { p50, p99, max };
  };
  const { runs, started, born } = rows[0]!;
  return { runs, ...shown(started), dueToBorn: shown(born) };
}

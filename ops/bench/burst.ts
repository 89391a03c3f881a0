import { type Account, accountFor, waitForEnd } from "./harness/account.ts";
import { plantSchedules, plantTenants } from "./harness/population.ts";
import { createProcesses } from "./harness/processes.ts";
import { type BenchServers, readCommands, readStatements, startBenchServers } from "./harness/servers.ts";

export type BurstOptions = {
  runs: number;
  tenants: number;
  workers: number;
  slots: number;
  /** Runs through the same processes beforehand: a scheduler in production is warm when the morning comes. */
  warmup: number;
};
export type BurstResult = Account & { bench: "burst"; ok: boolean; settings: Record<string, unknown> };

export const BURST: BurstOptions = { runs: 50_000, tenants: 100, workers: 2, slots: 2_000, warmup: 25_000 };

const WITHIN_MS = 120_000;

/** Every schedule of every tenant due at one instant, no-op work: from due to the last canonical result. */
export async function burst(options: BurstOptions, servers?: BenchServers): Promise<BurstResult> {
  const own = servers ?? (await startBenchServers());
  try {
    const { tenants } = options;
    await plantTenants(own.admin, tenants);
    const processes = createProcesses(own);
    await processes.start("scheduler,relay,sweeper");
    const slots = String(options.slots);
    for (let n = 0; n < options.workers; n++) await processes.start("worker", { PUNCTUAL_SLOTS_SHORT: slots });
    await plantSchedules(own.admin, { tenants, schedules: options.warmup, dueAt: new Date() });
    await waitForEnd(own.admin, options.warmup, WITHIN_MS);
    const leadMs = 8_000 + options.runs / 10;
    const dueAt = new Date(Math.ceil((Date.now() + leadMs) / 1000) * 1000);
    await plantSchedules(own.admin, { tenants, schedules: options.runs, dueAt });
    const late = Date.now() - dueAt.getTime();
    if (late > 0) throw new Error(`preparing took ${late} ms too long for a fair start`);
    await readStatements(own.admin);
    await readCommands(own);
    if (process.env.BENCH_STATEMENTS) await own.admin.query("select pg_stat_statements_reset()");
    const before = { ...(await costs(own)), roles: processes.cpu() };
    await new Promise((resolve) => setTimeout(resolve, -late));
    await waitForEnd(own.admin, options.runs + options.warmup, WITHIN_MS);
    const after = { ...(await costs(own)), roles: processes.cpu() };
    for (const line of [...(await readStatements(own.admin)), ...(await readCommands(own))]) console.error(line);
    await processes.stop();
    const account = await accountFor(own.admin, options.runs, dueAt);
    const per = (n: number) => Math.round((n / options.runs) * 10) / 10;
    return {
      bench: "burst",
      ...account,
      ok: account.lost === 0 && account.doubled === 0,
      settings: {
        ...options,
        ...own.settings,
        cpuUsPerRun: {
          postgres: per((after.postgres - before.postgres) * 1000),
          redis: per((after.redis - before.redis) * 1000),
          ...Object.fromEntries(
            Object.entries(after.roles).map(([role, ms]) => [role, per((ms - before.roles[role]!) * 1000)]),
          ),
        },
        walBytesPerRun: per(after.wal - before.wal),
        commits: after.commits - before.commits,
      },
    };
  } finally {
    if (servers === undefined) await own.stop();
  }
}

async function costs(
  servers: BenchServers,
): Promise<{ wal: number; commits: number; postgres: number; redis: number }> {
  const { rows } = await servers.admin.query(
    `select (pg_current_wal_lsn() - '0/0'::pg_lsn)::float8 as wal,
            (select xact_commit from pg_stat_database where datname = current_database())::float8 as commits`,
  );
  return { ...rows[0], ...servers.cpu() };
}

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type pg from "pg";
import { type Config, readConfig } from "../../src/app/config.ts";
import { type Core, createCore, openCore } from "../../src/app/core.ts";
import { workerRole } from "../../src/app/roles/worker.ts";
import { type RoleName, servicesOf } from "../../src/app/run-role.ts";
import type { Authority } from "../../src/authority/authority.ts";
import { createSchedule } from "../../src/authority/schedules/create-schedule.ts";
import { definitionSchema, type Payload } from "../../src/domain/definition.ts";
import { createRegistry, type DefinedJob } from "../../src/handlers/registry.ts";
import type { FaultPoints } from "../../src/kernel/faults.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import { type Service, startAll, stopAll } from "../../src/kernel/service.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

/** A thread that watches would be started for each node of each test. */
const UNWATCHED = { PUNCTUAL_BLOCKED_MS: "0" };

/** By length. With short ones, what a lease decides is seen within seconds; three heartbeats and the margin fit in the term. */
const LEASES = {
  short: { PUNCTUAL_LEASE_TTL_MS: "2500", PUNCTUAL_HEARTBEAT_MS: "500", PUNCTUAL_LEASE_MARGIN_MS: "500" },
  long: { PUNCTUAL_LEASE_TTL_MS: "60000", PUNCTUAL_HEARTBEAT_MS: "500", PUNCTUAL_LEASE_MARGIN_MS: "500" },
};

export type NodeOptions = {
  roles: readonly RoleName[];
  /** PostgreSQL: a database of this test's own, perhaps through a proxy. */
  url: string;
  /** Left out: dispatch is direct. */
  redis?: { url: string; prefix: string } | undefined;
  /** Left out: long, so that no attempt loses its lease because the machine is busy. */
  leases?: "short";
  /** Settings by their names; beside them no log. */
  config?: Record<string, string>;
  /** A fault point at which the process kills itself, without a word. For spawnNode alone. */
  killAt?: string;
};

/** One process of the system, or what would be one: roles with connections of their own. */
export type Node = {
  core: Core;
  stop(): Promise<void>;
};

function configOf(options: NodeOptions, directory: string): Config {
  return readConfig({
    DATABASE_URL: options.url,
    PUNCTUAL_DIR: directory,
    PUNCTUAL_OBJECTS_DIR: join(directory, "objects"),
    PUNCTUAL_LOG_LEVEL: "silent",
    PUNCTUAL_PORT: "0",
    ...LEASES[options.leases ?? "long"],
    ...UNWATCHED,
    ...(options.redis === undefined
      ? {}
      : { REDIS_URL: options.redis.url, PUNCTUAL_REDIS_PREFIX: options.redis.prefix }),
    ...options.config,
  });
}

/** Roles in this process. */
export async function startNode(
  options: NodeOptions & { jobs?: readonly DefinedJob[]; directory?: string; slotClock?: () => number },
): Promise<Node> {
  const directory = options.directory ?? makeTemporaryFolder("punctual-node-");
  const core = doomed(createCore(configOf(options, directory), options.roles.join("+")), options.killAt);
  await openCore(core);
  const services = options.roles.flatMap((role): Service[] =>
    role === "worker"
      ? workerRole(core, createRegistry(options.jobs ?? []), options.slotClock)
      : servicesOf(role, core),
  );
  await startAll(services);
  let stopping: Promise<void> | undefined;
  return {
    core,
    stop() {
      stopping ??= (async () => {
        await stopAll(services);
        await core.close();
        rmSync(directory, { recursive: true, force: true });
      })();
      return stopping;
    },
  };
}

function doomed(core: Core, point: string | undefined): Core {
  if (point === undefined) return core;
  const faults: FaultPoints = {
    reach: (name) => (name === point ? void process.kill(process.pid, "SIGKILL") : undefined),
  };
  return { ...core, authority: { ...core.authority, faults } };
}

const CHILD = fileURLToPath(new URL("../fault/role-child.ts", import.meta.url));

export type ChildNode = {
  pid: number;
  exited: Promise<unknown>;
  /** Ends it without a word, as a power cut would. */
  kill(): Promise<void>;
  /** Asks it to stop, and waits. */
  stop(): Promise<void>;
};

/** Roles in a process of their own, with the jobs of test/fault/jobs.ts. It ends with this process at the latest. */
export async function spawnNode(options: NodeOptions): Promise<ChildNode> {
  const directory = makeTemporaryFolder("punctual-child-");
  const { PATH, NODE_COMPILE_CACHE } = process.env;
  const child: ChildProcess = spawn(process.execPath, [CHILD], {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    env: { PATH, NODE_COMPILE_CACHE, PUNCTUAL_TEST_NODE: JSON.stringify({ options, directory }) },
  });
  const exited = once(child, "exit").then(() => rmSync(directory, { recursive: true, force: true }));
  await Promise.race([once(child, "message"), exited.then(() => Promise.reject(new Error("the child did not start")))]);
  const end = async (signal: "SIGKILL" | "SIGTERM") => {
    child.kill(signal);
    await exited;
  };
  return { pid: child.pid!, exited, kill: () => end("SIGKILL"), stop: () => end("SIGTERM") };
}

/** Inside the child: what spawnNode handed over. */
export function readHandedOver(text: string): { options: NodeOptions; directory: string } {
  return JSON.parse(text) as { options: NodeOptions; directory: string };
}

/** Waits for an outcome that other processes bring about; says what was waited for when it does not come. */
export async function until(
  what: string,
  check: () => Promise<boolean> | boolean,
  withinMs = 60_000,
  told: () => Promise<unknown> | unknown = () => "",
): Promise<void> {
  const endsAt = performance.now() + withinMs;
  while (!(await check())) {
    if (performance.now() > endsAt)
      throw new Error(`${what}: not within ${withinMs} ms ${JSON.stringify(await told())}`);
    await sleep(20);
  }
}

/** Runs by state, `open` and ended; what most tests wait for and count. */
export async function countRuns(admin: pg.Pool): Promise<Record<string, number>> {
  const { rows } = await admin.query<{ state: string; n: number }>(
    `select coalesce(l.state, r.state) as state, count(*)::int as n
       from run r left join live_run l on l.id = r.id group by 1 order by 1`,
  );
  return Object.fromEntries(rows.map((row) => [row.state, row.n]));
}

/** Waits until so many runs have succeeded and none is open; none may have ended otherwise. */
export async function allSucceed(admin: pg.Pool, runs: number, withinMs = 120_000): Promise<void> {
  const done = async () => JSON.stringify(await countRuns(admin)) === JSON.stringify({ succeeded: runs });
  await until(`${runs} runs succeed`, done, withinMs, () => countRuns(admin));
}

/**
 * A schedule of `runs` instants, `everyMs` apart, of which the first was due `dueAgoMs` ago; by default all are due. The
 * scanner turns them into runs that do not wait for one another.
 */
export async function dueSchedule(
  authority: Authority,
  admin: pg.Pool,
  one: { tenantId: Uuid; runs: number; job: string; payload?: Payload; everyMs?: number; dueAgoMs?: number },
): Promise<Uuid> {
  const { tenantId, runs, job, payload = {}, everyMs = 1_000, dueAgoMs = runs * everyMs } = one;
  const made = await createSchedule(authority, {
    tenantId,
    actor: "test",
    name: job,
    labels: {},
    definition: definitionSchema.parse({
      rule: { kind: "interval", everyMs, anchorAt: 0 },
      job: { kind: "function", name: job },
      overlap: { policy: "allow" },
      misfire: { policy: "latest", graceMs: 86_400_000 },
      retry: { maxAttempts: 10, baseMs: 1, capMs: 100 },
      maxRuns: runs,
    }),
    payload,
  });
  if (made.kind !== "created") throw new Error(`not created: ${made.kind}`);
  await admin.query(
    `update schedule_cursor
        set next_run_at = date_trunc('second', clock_timestamp()) - $2::int * interval '1 ms',
            next_due_at = date_trunc('second', clock_timestamp()) - $2::int * interval '1 ms'
      where schedule_id = $1`,
    [made.schedule.id, dueAgoMs],
  );
  return made.schedule.id;
}

export async function newTenant(admin: pg.Pool, name: string): Promise<Uuid> {
  const id = mintId(Date.now(), 0);
  await admin.query("insert into tenant (id, name) values ($1, $2)", [id, name]);
  return id;
}

import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { repairUsage } from "../../src/authority/repair/usage-drift.ts";
import { CRASH_LOOP_LIMIT } from "../../src/domain/retry.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { randomFrom } from "../support/random.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { type ChildNode, countRuns, dueSchedule, spawnNode, startNode, until } from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { createWorld, type World } from "../support/world.ts";

const LIMIT = 10;
const WORKERS = 4;
const RUNS = 200;
/** Fewer than have a run taken for one that kills its workers: it may be the last that is left, and be hit each time. */
const KILLS = CRASH_LOOP_LIMIT - 1;

/**
 * Most attempts that ran at once, by PostgreSQL's own history. An attempt ends where its run's row or its own says so; one
 * of a worker that was killed runs until its lease was found to be over.
 */
const MOST_AT_ONCE = `
  with span as (
    select a.started_at as from_at, coalesce(a.ended_at, r.finished_at) as to_at
      from attempt a join run r on r.id = a.run_id),
  step as (
    select from_at as at, 1 as change from span union all select to_at, -1 from span where to_at is not null)
  -- Where one ends and another starts in the same moment, the slot was handed on.
  select max(running)::int as most from (select sum(change) over (order by at, change) as running from step) s`;

async function mostAtOnce(world: World): Promise<number> {
  return (await world.admin.query(MOST_AT_ONCE)).rows[0].most;
}

/** How it stands, and of what has failed every attempt. */
async function told(world: World): Promise<unknown> {
  const { rows } = await world.admin.query(
    `select r.error_code as run, a.n, a.worker, a.started_at, a.ended_at, a.outcome, a.error_code, a.error_message
       from attempt a join run r on r.id = a.run_id where r.state = 'failed' order by a.run_id, a.n`,
  );
  return { runs: await countRuns(world.admin), failed: rows };
}

/** Who is killed holds something: undefined once there is nothing left to hold. A worker's name ends with its process and a mark. */
async function findOneAtWork(world: World, workers: readonly ChildNode[]): Promise<number | undefined> {
  let place = -1;
  await until("somebody is at work, or all have succeeded", async () => {
    const { rows } = await world.admin.query<{ pid: number }>(
      "select substring(worker from '-([0-9]+)-[^-]+$')::int as pid from live_run where state = 'running'",
    );
    place = workers.findIndex((worker) => rows.some((row) => row.pid === worker.pid));
    return place !== -1 || (await countRuns(world.admin)).succeeded === RUNS;
  });
  return place === -1 ? undefined : place;
}

const ways = redisAvailable ? (["redis", "outbox"] as const) : (["outbox"] as const);
for (const by of ways) {
  test.concurrent(`by ${by}: with a limit of ten, four workers that are killed again and again never run eleven, and nothing leaks`, async ({
    onTestFinished,
  }) => {
    const world = await createWorld();
    const redis = by === "redis" ? { ...testRedis(), prefix: `x${mintId(Date.now(), 0).slice(-8)}` } : undefined;
    // Few slots each, so that no three workers can have all that the limit allows: whoever is killed holds something.
    const options = { leases: "short" as const, url: world.url, redis, config: { PUNCTUAL_SLOTS_SHORT: "3" } };
    const folder = makeTemporaryFolder("punctual-limit-");
    const feeder = await startNode({ ...options, roles: ["scheduler", "relay", "sweeper"] });
    const workers: ChildNode[] = [];
    onTestFinished(async () => {
      await feeder.stop();
      for (const worker of workers) await worker.stop();
      await world.close();
    });
    await world.admin.query("insert into quota (tenant_id, class, max_running) values ($1, 'short', $2)", [
      world.tenantId,
      LIMIT,
    ]);
    workers.push(
      ...(await Promise.all(Array.from({ length: WORKERS }, () => spawnNode({ ...options, roles: ["worker"] })))),
    );
    await dueSchedule(world.authority, world.admin, {
      tenantId: world.tenantId,
      runs: RUNS,
      job: "test.append",
      payload: { file: `${folder}/traces`, firstMs: 400 },
    });
    const random = randomFrom(11);
    for (let kills = 0; kills < KILLS; kills++) {
      const target = ((kills + 1) * RUNS) / (KILLS + 2);
      await until(
        `${target} runs have ended`,
        async () => ((await countRuns(world.admin)).succeeded ?? 0) >= target,
        60_000,
      );
      await sleep(random() * 50);
      const place = await findOneAtWork(world, workers);
      // On a slow machine a new worker takes longer to start than the others need for all that is left.
      if (place === undefined) break;
      await workers[place]!.kill();
      workers[place] = await spawnNode({ ...options, roles: ["worker"] });
    }
    await until(
      "all have succeeded",
      async () => (await countRuns(world.admin)).succeeded === RUNS,
      120_000,
      () => told(world),
    );
    expect(await mostAtOnce(world)).toBeLessThanOrEqual(LIMIT);
    const { rows } = await world.admin.query("select count(*)::int as n from attempt where outcome = 'expired'");
    expect(rows[0].n).toBeGreaterThan(0);
    expect(await world.usage()).toBe(0);
    await world.check();

    // What no verb ever leaves behind is found, and put right.
    await world.admin.query("update usage set running = running + 3");
    await expect(world.check()).rejects.toThrow(/usage is the number of running rows/);
    expect(await repairUsage(world.authority, 10)).toBe(1);
    expect(await world.usage()).toBe(0);
    await world.check();
  }, 400_000);
}

import { expect, test } from "vitest";
import type { Uuid } from "../../src/kernel/ids.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { allSucceed, dueSchedule, spawnNode, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";
import { createLedger } from "./ledger.ts";

const redis = redisAvailable ? testRedis() : undefined;
const SCHEDULES = 40;
/** Renewed every three seconds, and with it the list of who is there. */
const SCANNER_LEASE_MS = 10_000;
/** Who looks at overdue work of others looks every two seconds, from two seconds on; a scanner's lease takes ten. */
const LATEST_MS = 10_000;

/** Two schedulers that know each other, one here, one in a process of its own; workers; and schedules due in a while. */
async function openScene(onTestFinished: (close: () => Promise<void>) => void, killAt?: string) {
  const world = await createWorld();
  const ledger = createLedger();
  const options = { url: world.url, redis: redis && { ...redis, prefix: `s${world.tenantId.slice(-8)}` } };
  const nodes = [
    await startNode({ ...options, roles: ["scheduler", "relay", "sweeper"] }),
    await startNode({ ...options, roles: ["worker"], jobs: [ledger.job] }),
  ];
  const doomed = await spawnNode({ ...options, roles: ["scheduler"], ...(killAt === undefined ? {} : { killAt }) });
  onTestFinished(async () => {
    await doomed.kill();
    for (const node of nodes) await node.stop();
    await world.check();
    await world.close();
  });
  await until("each has looked who else is there since the other came", async () => {
    const { rows } = await world.admin.query(
      `select count(*) = 2 and min(expires_at) >= max(started_at) + $1 * interval '1 ms' as yes from scanner`,
      [SCANNER_LEASE_MS],
    );
    return rows[0].yes;
  });
  const ids: Uuid[] = [];
  for (let n = 0; n < SCHEDULES; n++) {
    ids.push(
      await dueSchedule(world.authority, world.admin, {
        tenantId: world.tenantId,
        runs: 1,
        job: "test.count",
        dueAgoMs: -3_000,
      }),
    );
  }
  return { world, ledger, doomed };
}

/** All have run, once each, and in time; how many were made later than they would have been without a death. */
async function expectEachOnceInTime(world: World): Promise<number> {
  await allSucceed(world.admin, SCHEDULES);
  const { rows } = await world.admin.query(
    `select count(*)::int as runs, count(distinct (schedule_id, scheduled_at))::int as instants,
            count(*) filter (where materialized_at - scheduled_at > interval '1.5 seconds')::int as late,
            max(extract(epoch from materialized_at - scheduled_at) * 1000)::float8 as latest
       from run`,
  );
  expect(rows[0]).toMatchObject({ runs: SCHEDULES, instants: SCHEDULES });
  expect(rows[0].latest).toBeLessThan(LATEST_MS);
  await until("the outbox is empty", async () => (await world.outbox()).length === 0);
  return rows[0].late;
}

for (const [when, killAt, made] of [
  ["(1) after it locked its rows", "materialize:cursors-locked", false],
  ["(1) after it wrote its runs, before the commit", "materialize:written", false],
  ["(2) after the commit, before anything was published", "scanner:committed", true],
] as const) {
  test.concurrent(`B26 ${when}, a scanner is killed: the other makes what is missing, each instant is there once`, async ({
    onTestFinished,
  }) => {
    const { world, ledger, doomed } = await openScene(onTestFinished, killAt);
    await until("it is dead", () => doomed.exited.then(() => true));
    const late = await expectEachOnceInTime(world);
    ledger.expectEachOnce(SCHEDULES);
    if (!made) expect(late).toBeGreaterThan(0);
  });
}

test.concurrent("B26 (3) a scanner is killed while it owns its buckets and does nothing: the other, idle, finds what is due there", async ({
  onTestFinished,
}) => {
  const { world, ledger, doomed } = await openScene(onTestFinished);
  expect((await world.admin.query("select count(*)::int as n from scanner")).rows).toEqual([{ n: 2 }]);
  await doomed.kill();
  expect(await expectEachOnceInTime(world)).toBeGreaterThan(0);
  ledger.expectEachOnce(SCHEDULES);
});

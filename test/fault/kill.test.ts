import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { randomFrom } from "../support/random.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import {
  allSucceed,
  type ChildNode,
  countRuns,
  dueSchedule,
  type Node,
  type NodeOptions,
  spawnNode,
  startNode,
  until,
} from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { createWorld } from "../support/world.ts";
import { createLedger } from "./ledger.ts";

const redis = redisAvailable ? testRedis() : undefined;

/** A world of this test's own: the tests of this file run side by side, for most of them wait. */
async function openScene(onTestFinished: (close: () => Promise<void>) => void) {
  const world = await createWorld();
  const folder = makeTemporaryFolder("punctual-kill-");
  const nodes: { stop(): Promise<void> }[] = [];
  const options = {
    leases: "short" as const,
    url: world.url,
    redis: redis && { ...redis, prefix: `k${world.tenantId.slice(-8)}` },
  };
  onTestFinished(async () => {
    for (const node of nodes) await node.stop();
    rmSync(folder, { recursive: true, force: true });
    await world.check();
    await world.close();
  });
  return {
    world,
    folder,
    nodes,
    async start(roles: NodeOptions["roles"], jobs: Parameters<typeof startNode>[0]["jobs"] = []): Promise<Node> {
      const node = await startNode({ ...options, roles, jobs });
      nodes.push(node);
      return node;
    },
    spawn: (roles: NodeOptions["roles"]): Promise<ChildNode> => spawnNode({ ...options, roles }),
  };
}

/** What attempts wrote: run, attempt, process. */
function traces(file: string): { run: string; attempt: number; pid: number }[] {
  appendFileSync(file, "");
  const lines = readFileSync(file, "utf8").split("\n").filter(Boolean);
  return lines.map((line) => {
    const [run = "", attempt, pid] = line.split(" ");
    return { run, attempt: Number(attempt), pid: Number(pid) };
  });
}

test.concurrent("runs of a worker that was killed in the middle are tried again by another, each with one result", async ({
  onTestFinished,
}) => {
  const { world, folder, nodes, start, spawn } = await openScene(onTestFinished);
  const file = join(folder, "traces");
  await start(["scheduler", "relay", "sweeper"]);
  const doomed = await spawn(["worker"]);
  await dueSchedule(world.authority, world.admin, {
    tenantId: world.tenantId,
    runs: 12,
    job: "test.append",
    payload: { file, firstMs: 60_000 },
  });
  await until("all are running", async () => (await countRuns(world.admin)).running === 12);
  await doomed.kill();
  const heir = await spawn(["worker"]);
  nodes.push(heir);
  await allSucceed(world.admin, 12);
  const second = traces(file).filter((one) => one.attempt === 2);
  expect(new Set(second.map((one) => one.run)).size).toBe(12);
  expect(second.every((one) => one.pid === heir.pid)).toBe(true);
  const { rows } = await world.admin.query(
    "select n, outcome, error_code, count(*)::int as runs from attempt group by 1, 2, 3 order by 1",
  );
  expect(rows).toEqual([
    { n: 1, outcome: "expired", error_code: "lease-expired", runs: 12 },
    { n: 2, outcome: null, error_code: null, runs: 12 },
  ]);
}, 180_000);

test.concurrent("schedulers that are killed again and again lose no instant and double none", async ({
  onTestFinished,
}) => {
  const { world, nodes, start, spawn } = await openScene(onTestFinished);
  const SCHEDULES = 75;
  const RUNS = 8;
  const KILLS = 6;
  const ledger = createLedger();
  await start(["relay", "sweeper"]);
  await start(["worker"], [ledger.job]);
  for (let n = 0; n < SCHEDULES; n++) {
    await dueSchedule(world.authority, world.admin, {
      tenantId: world.tenantId,
      runs: RUNS,
      job: "test.count",
      dueAgoMs: 0,
    });
  }
  const random = randomFrom(7);
  let child = await spawn(["scheduler"]);
  for (let kills = 0; kills < KILLS; kills++) {
    const next = spawn(["scheduler"]);
    await sleep(random() * 400);
    await child.kill();
    child = await next;
  }
  nodes.push(child);
  await allSucceed(world.admin, SCHEDULES * RUNS, 120_000);
  ledger.expectEachOnce(SCHEDULES * RUNS);
  const { rows } = await world.admin.query(
    `select count(*)::int as gaps from run r
      where prev_scheduled_at is not null and scheduled_at - prev_scheduled_at <> interval '1 second'`,
  );
  expect(rows).toEqual([{ gaps: 0 }]);
}, 180_000);

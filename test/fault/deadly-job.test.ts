import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import {
  type ChildNode,
  dueSchedule,
  type Node,
  type NodeOptions,
  spawnNode,
  startNode,
  until,
} from "../support/system.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";
import { createWorld } from "../support/world.ts";

/** Leases that even a busy machine keeps: an amnesty would forgive tries that these tests count. */
const config = { PUNCTUAL_LEASE_TTL_MS: "6000", PUNCTUAL_HEARTBEAT_MS: "1800", PUNCTUAL_LEASE_MARGIN_MS: "500" };

async function openScene() {
  const world = await createWorld();
  const folder = makeTemporaryFolder("punctual-deadly-");
  const redis = redisAvailable ? await startTestRedis() : undefined;
  const options = { url: world.url, config, redis: redis && { url: redis.url, prefix: "deadly" } };
  const nodes: Node[] = [];
  let supervising = true;
  let child: ChildNode | undefined;
  /** Starts a worker as often as one dies. */
  const supervisor = (async () => {
    while (supervising) {
      child = await spawnNode({ ...options, roles: ["worker"] }).catch(() => undefined);
      if (!supervising) await child?.kill();
      else await (child?.exited ?? sleep(50));
    }
  })();
  onTestFinished(async () => {
    supervising = false;
    await child?.kill();
    await supervisor;
    for (const node of nodes) await node.stop();
    await redis?.stop();
    rmSync(folder, { recursive: true, force: true });
    await world.check();
    await world.close();
  });
  return {
    world,
    file: join(folder, "traces"),
    async start(roles: NodeOptions["roles"]): Promise<Node> {
      const node = await startNode({ ...options, roles });
      nodes.push(node);
      return node;
    },
    async bearDeadly(maxAttempts: number): Promise<Uuid> {
      const id = await world.newSchedule({
        job: { kind: "function", name: "test.abort", version: 1 },
        retry: { maxAttempts, maxElapsedMs: 600_000, baseMs: 1, capMs: 10 },
      });
      await world.makeDue(id);
      await world.materialize([id]);
      return (await world.live()).find((run) => run.schedule_id === id)!.id;
    },
    attempts: async (runId: Uuid) =>
      (await world.admin.query("select n, outcome, error_code from attempt where run_id = $1 order by n", [runId]))
        .rows,
    stateOf: async (runId: Uuid) => String((await world.run(runId)).state),
  };
}

test("B31 a job that kills its worker has as many attempts as it may, each counted when it was claimed, and no more after everything is forgotten", async () => {
  const { world, file, start, bearDeadly, attempts, stateOf } = await openScene();
  const main = await start(["scheduler", "relay"]);
  const sweeper = await start(["sweeper"]);
  const runId = await bearDeadly(3);
  // Work of somebody else, that dies with the worker each time.
  const bystander = await dueSchedule(world.authority, world.admin, {
    tenantId: world.tenantId,
    runs: 1,
    job: "test.append",
    payload: { file, firstMs: 60_000 },
  });
  await until(
    "it is given up",
    async () => (await stateOf(runId)) === "failed",
    120_000,
    () => attempts(runId),
  );
  const three = [1, 2, 3].map((n) => ({ n, outcome: "expired", error_code: "lease-expired" }));
  expect(await attempts(runId)).toEqual(three);
  const { rows } = await world.admin.query("select reason, attempts from dead_letter");
  expect(rows).toEqual([{ reason: "attempts-exhausted", attempts: 3 }]);

  await sweeper.stop();
  await main.core.redis?.connection.client.flushall();
  await start(["sweeper"]);
  await until(
    "others' work is tried again, and done",
    async () => {
      const ended = await world.admin.query("select state from run where schedule_id = $1", [bystander]);
      return ended.rows[0]?.state === "succeeded";
    },
    120_000,
  );
  expect(await attempts(runId)).toEqual(three);
  expect(await stateOf(runId)).toBe("failed");
}, 400_000);

test("B31 a job that kills its worker again and again is ended by a cancellation, without a dead letter", async () => {
  const { world, start, bearDeadly, attempts, stateOf } = await openScene();
  await start(["scheduler", "relay", "sweeper"]);
  const runId = await bearDeadly(100);
  await until("it is in its second attempt", async () => (await attempts(runId)).length === 2, 120_000);
  const [answer] = await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId }]);
  expect(["accepted", "requested"]).toContain(answer!.kind);
  await until("it is canceled", async () => (await stateOf(runId)) === "canceled", 120_000);
  expect((await attempts(runId)).length).toBe(2);
  expect((await world.admin.query("select 1 from dead_letter")).rows).toEqual([]);
}, 400_000);

import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import type { JobContext, JobResult } from "../../src/handlers/context.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { readId } from "../../src/kernel/ids.ts";
import { allSucceed, countRuns, type Node, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

/** A job that hands its work to somebody else and says so; that somebody is the test. */
let world: World;
let nodes: Node[];

beforeEach(async () => {
  world = await createWorld();
  nodes = [];
});
afterEach(async () => {
  for (const node of nodes) await node.stop();
  await world.check();
  await world.close();
});

async function start(roles: ("worker" | "sweeper")[], run?: (ctx: JobContext) => JobResult | Promise<JobResult>) {
  const jobs = run === undefined ? [] : [defineJob({ name: "test.noop", version: 1, input: z.unknown(), run })];
  const node = await startNode({ roles, leases: "short", url: world.url, jobs, config: { PUNCTUAL_SLOTS_SHORT: "1" } });
  nodes.push(node);
  return node;
}

async function bear(runs: number): Promise<void> {
  const id = await world.newSchedule({
    rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 },
    overlap: { policy: "allow" },
    retry: { maxAttempts: 3, maxElapsedMs: 60_000, baseMs: 1, capMs: 50 },
    maxRuns: runs,
  });
  await world.makeDue(id, runs * 1_000);
  await world.materialize([id]);
}

/** What a job tells the outside, so that it can call back. */
type Receipt = { runId: string; fence: bigint; attempt: number };
const receiptOf = ({ run }: JobContext): Receipt => ({
  runId: readId("run", run.id)!,
  fence: run.fence,
  attempt: run.attempt,
});

test("work that goes on elsewhere keeps no slot, outlives its worker and its lease, and succeeds by its callback", async () => {
  await start(["sweeper"]);
  await bear(3);
  const receipts: Receipt[] = [];
  const worker = await start(["worker"], (ctx) => {
    receipts.push(receiptOf(ctx));
    return { detached: {} };
  });
  // One slot, three runs: each makes room for the next.
  await until("all are handed on", () => receipts.length === 3);
  await until("none is held", async () => {
    const { rows } = await world.admin.query("select count(*)::int as n from live_run where worker is null");
    return rows[0].n === 3;
  });
  await worker.stop();
  // Any lease that a heartbeat had to renew is over by then.
  await world.passes((await latestDetachment()) + 3_000);
  expect(await countRuns(world.admin)).toEqual({ running: 3 });
  await completeRuns(
    world.authority,
    receipts.map(({ runId, fence }) => ({ runId, fence, output: null })),
  );
  await allSucceed(world.admin, 3);
});

test("a callback that says the work failed brings the next attempt, and one that never comes does too", async () => {
  await start(["sweeper"]);
  await bear(1);
  const receipts: Receipt[] = [];
  await start(["worker"], (ctx) => {
    receipts.push(receiptOf(ctx));
    if (ctx.run.attempt === 3) return;
    return { detached: ctx.run.attempt === 2 ? { callbackWithinMs: 50 } : {} };
  });
  await until("it is handed on", async () => (await latestDetachment()) > 0);
  const [{ runId, fence }] = receipts as [Receipt];
  await failRuns(world.authority, [{ runId, fence, failure: { transient: true, code: "upstream", message: "no" } }]);
  await allSucceed(world.admin, 1);
  const { rows } = await world.admin.query("select n, outcome, error_code from attempt order by n");
  expect(rows).toEqual([
    { n: 1, outcome: "failed", error_code: "upstream" },
    { n: 2, outcome: "expired", error_code: "callback-timeout" },
    { n: 3, outcome: null, error_code: null },
  ]);
});

test("a callback that is faster than its worker's own word counts", async () => {
  await bear(1);
  await start(["worker"], async (ctx) => {
    const { runId, fence } = receiptOf(ctx);
    expect(await completeRuns(world.authority, [{ runId, fence, output: null }])).toEqual([{ kind: "accepted" }]);
    return { detached: {} };
  });
  await allSucceed(world.admin, 1);
});

async function latestDetachment(): Promise<number> {
  const { rows } = await world.admin.query("select max(detached_at) as at from attempt");
  return (rows[0].at as Date | null)?.getTime() ?? 0;
}

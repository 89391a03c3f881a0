import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import type { JobContext, JobResult } from "../../src/handlers/context.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { allSucceed, countRuns, type Node, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";
import { type PostgresProxy, startPostgresProxy } from "./postgres-proxy.ts";

let world: World;
let proxy: PostgresProxy;
let nodes: Node[];

beforeEach(async () => {
  world = await createWorld();
  proxy = await startPostgresProxy(world.url);
  nodes = [];
});
afterEach(async () => {
  proxy.resume();
  for (const node of nodes) await node.stop();
  await proxy.stop();
  await world.check();
  await world.close();
});

/** A worker that reaches PostgreSQL through the proxy. */
async function startWorker(run: (ctx: JobContext) => Promise<JobResult> | JobResult): Promise<Node> {
  const job = defineJob({ name: "test.noop", version: 1, input: z.unknown(), run });
  const config = { PUNCTUAL_VERB_DEADLINE_MS: "1000" };
  const node = await startNode({ roles: ["worker"], leases: "short", url: proxy.url, jobs: [job], config });
  nodes.push(node);
  return node;
}

async function bear(runs: number): Promise<void> {
  const id = await world.newSchedule({
    rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 },
    overlap: { policy: "allow" },
    maxRuns: runs,
  });
  await world.makeDue(id, runs * 1_000);
  await world.materialize([id]);
}

async function attempts(): Promise<unknown[]> {
  return (await world.admin.query("select n, outcome from attempt order by started_at")).rows;
}

/** A counter, or how often a histogram was fed, over the labels that match. */
async function counted(node: Node, name: string, labels: Record<string, string>): Promise<number> {
  const metric = (await node.core.metrics.registry.getMetricsAsJSON()).find((one) => one.name.includes(name));
  const values = (metric?.values ?? []) as { labels: object; value: number; metricName?: string }[];
  const fits = (of: object) => Object.entries(labels).every(([key, value]) => (of as never)[key] === value);
  return values
    .filter((one) => fits(one.labels) && (one.metricName ?? "_count").endsWith("_count"))
    .reduce((sum, one) => sum + one.value, 0);
}

test("an attempt is told to stop before its lease can have ended, when PostgreSQL does not answer any more", async () => {
  await bear(1);
  const stops: { reason: unknown; leaseAlive: boolean }[] = [];
  const node = await startWorker(async (ctx) => {
    if (ctx.run.attempt > 1) return;
    await sleep(60_000, undefined, { signal: ctx.signal }).catch(() => undefined);
    const { rows } = await world.admin.query("select lease_until > clock_timestamp() as alive from live_run");
    stops.push({ reason: ctx.signal.reason, leaseAlive: rows[0].alive });
    ctx.signal.throwIfAborted();
  });
  await until("it beats", async () => (await counted(node, "verb_seconds", { verb: "heartbeat" })) > 0);
  proxy.pause();
  await until("it is told", () => stops.length > 0);
  expect(stops).toEqual([{ reason: "lease-doubtful", leaseAlive: true }]);
  proxy.resume();
  await allSucceed(world.admin, 1);
});

test("a result that was finished while PostgreSQL was away is still accepted, if nobody took over", async () => {
  await bear(1);
  let executions = 0;
  let finish = () => {};
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  await startWorker(() => {
    executions++;
    return finished;
  });
  await until("it runs", async () => (await countRuns(world.admin)).running === 1);
  proxy.pause();
  await until("its lease is over", async () => {
    const { rows } = await world.admin.query("select lease_until < clock_timestamp() as over from live_run");
    return rows[0].over;
  });
  finish();
  proxy.resume();
  await allSucceed(world.admin, 1);
  expect(executions).toBe(1);
  expect(await attempts()).toEqual([{ n: 1, outcome: null }]);
});

test("a claim whose reply is lost is repeated and gets the same grants", async () => {
  await bear(5);
  const lost = proxy.loseCommitOf("grants_start");
  const executed: string[] = [];
  const node = await startWorker((ctx) => void executed.push(`${ctx.run.id} ${ctx.run.attempt}`));
  await lost;
  await allSucceed(world.admin, 5);
  expect(await counted(node, "verb_faults", { verb: "claim" })).toBe(1);
  expect(new Set(executed).size).toBe(5);
  expect(executed).toHaveLength(5);
  expect((await attempts()).every((one) => (one as { n: number }).n === 1)).toBe(true);
});

test("a completion whose reply is lost is said again and was already accepted", async () => {
  await bear(1);
  const lost = proxy.loseCommitOf("endings_update_runs");
  let executions = 0;
  const node = await startWorker(() => void executions++);
  await lost;
  await until("it is said again", async () => (await counted(node, "verb_seconds", { verb: "complete" })) >= 2);
  await allSucceed(world.admin, 1);
  expect(await counted(node, "verb_faults", { verb: "complete" })).toBe(1);
  expect(await counted(node, "stale_completions", {})).toBe(0);
  expect(executions).toBe(1);
});

for (const [what, statement] of [
  ["grant", "objects_insert"],
  ["staging", "objects_stage"],
] as const) {
  test(`an output whose ${what} got no reply is neither lost nor made again`, async () => {
    await bear(1);
    const lost = proxy.loseCommitOf(statement);
    let executions = 0;
    await startWorker(() => {
      executions++;
      return { output: { name: "a.txt", bytes: Buffer.from("the report"), mediaType: "text/plain" } };
    });
    await lost;
    await allSucceed(world.admin, 1);
    expect(executions).toBe(1);
    const { rows } = await world.admin.query("select result_size::int as size from run");
    expect(rows[0].size).toBe(10);
    expect(await attempts()).toEqual([{ n: 1, outcome: null }]);
  });
}

test("an output that was made while PostgreSQL was away is still accepted, if nobody took over", async () => {
  await bear(1);
  let executions = 0;
  const made = Promise.withResolvers<void>();
  await startWorker(async () => {
    executions++;
    await made.promise;
    return { output: { name: "a.txt", bytes: Buffer.from("the report"), mediaType: "text/plain" } };
  });
  await until("it runs", async () => (await countRuns(world.admin)).running === 1);
  proxy.pause();
  await until("its lease is over", async () => {
    const { rows } = await world.admin.query("select lease_until < clock_timestamp() as over from live_run");
    return rows[0].over;
  });
  made.resolve();
  proxy.resume();
  await allSucceed(world.admin, 1);
  expect(executions).toBe(1);
  expect(await attempts()).toEqual([{ n: 1, outcome: null }]);
});

test("a failure whose reply is lost is said again and was already told: one try is spent, and the next one comes", async () => {
  await bear(1);
  const lost = proxy.loseCommitOf("depart_to_retrying");
  const attempted: number[] = [];
  const node = await startWorker((ctx) => {
    attempted.push(ctx.run.attempt);
    if (ctx.run.attempt === 1) throw new Error("not yet");
  });
  await lost;
  await allSucceed(world.admin, 1);
  expect(await counted(node, "verb_faults", { verb: "fail" })).toBe(1);
  expect(await counted(node, "verb_seconds", { verb: "fail" })).toBeGreaterThanOrEqual(2);
  expect(await counted(node, "stale_completions", {})).toBe(0);
  expect(attempted).toEqual([1, 2]);
  expect(await attempts()).toEqual([
    { n: 1, outcome: "failed" },
    { n: 2, outcome: null },
  ]);
});

test("a detachment whose reply is lost is said again, with the same deadline for the callback", async () => {
  await bear(1);
  const lost = proxy.loseCommitOf("leases_hand_over");
  let executions = 0;
  const node = await startWorker(() => {
    executions++;
    return { detached: { callbackWithinMs: 60_000 } };
  });
  await lost;
  await until("it is said again", async () => (await counted(node, "verb_seconds", { verb: "detach" })) >= 2);
  await node.stop();
  const { rows } = await world.admin.query(
    `select l.state, l.worker, l.attempt, extract(epoch from l.lease_until - a.detached_at)::int as seconds
       from live_run l join attempt a on a.run_id = l.id and a.n = l.attempt`,
  );
  expect(rows).toEqual([{ state: "running", worker: null, attempt: 1, seconds: 60 }]);
  expect(executions).toBe(1);
});

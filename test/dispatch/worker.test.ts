import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import type { JobContext } from "../../src/handlers/context.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { showId } from "../../src/kernel/ids.ts";
import { allSucceed, countRuns, type Node, type NodeOptions, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

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

type Run = (ctx: JobContext, input: { name?: string | undefined }) => Promise<void> | void;

/** A worker without Redis whose one job is `run`. */
async function startWorker(
  run: Run,
  config: Record<string, string> = {},
  more: Partial<NodeOptions> = {},
): Promise<Node> {
  const job = defineJob({ name: "test.noop", version: 1, input: z.object({ name: z.string().optional() }), run });
  return start({ roles: ["worker"], url: world.url, config, ...more }, [job]);
}

async function start(options: NodeOptions, jobs: Parameters<typeof startNode>[0]["jobs"] = []): Promise<Node> {
  const node = await startNode({ ...options, jobs });
  nodes.push(node);
  return node;
}

/** So many runs of one schedule, in rows of `perRow`. */
async function bear(runs: number, perRow = 1): Promise<void> {
  const id = await world.newSchedule({
    rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 },
    overlap: { policy: "allow" },
    maxRuns: runs,
  });
  await world.makeDue(id, runs * 1_000);
  await world.materialize([id]);
  if (perRow === 1) return;
  // Runs of one instant share rows; these are due one after another.
  await world.admin.query(
    `with gone as (delete from outbox returning *),
          runs as (select gone.*, run, row_number() over () as n from gone cross join unnest(gone.runs) as run)
     insert into outbox (kind, tenant_id, class, lane, available_at, runs)
     select kind, tenant_id, class, lane, max(available_at), array_agg(run) from runs
      group by kind, tenant_id, class, lane, n / $1`,
    [perRow],
  );
}

/** Works until it is told to stop, and says why it was. */
function endless(told: unknown[]): Run {
  return async (ctx) => {
    await sleep(60_000, undefined, { signal: ctx.signal }).catch(() => told.push(ctx.signal.reason));
    ctx.signal.throwIfAborted();
  };
}

for (const perRow of [1, 20]) {
  test(`a worker never runs more attempts than it has slots, with ${perRow} runs a hint`, async () => {
    let now = 0;
    let most = 0;
    await bear(60, perRow);
    await startWorker(
      async () => {
        most = Math.max(most, ++now);
        await sleep(5);
        now--;
      },
      { PUNCTUAL_SLOTS_SHORT: "3" },
    );
    await allSucceed(world.admin, 60);
    expect(most).toBe(3);
  });
}

test("heartbeats keep an attempt alive that takes longer than a lease", async () => {
  await start({ roles: ["sweeper"], url: world.url });
  await bear(1);
  await startWorker(() => sleep(4_000), {}, { leases: "short" });
  await allSucceed(world.admin, 1);
  const { rows } = await world.admin.query("select n, outcome from attempt");
  expect(rows).toEqual([{ n: 1, outcome: null }]);
});

test("a cancellation reaches the handler through a heartbeat, and the run ends as canceled", async () => {
  const told: unknown[] = [];
  await bear(1);
  await startWorker(endless(told));
  await until("it runs", async () => (await countRuns(world.admin)).running === 1);
  const runId = (await world.live())[0]!.id;
  expect(await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId }])).toEqual([{ kind: "requested" }]);
  await until("it is canceled", async () => (await countRuns(world.admin)).canceled === 1);
  expect(told).toEqual(["canceled"]);
});

test("an attempt past its deadline is told to stop, and fails as timed out", async () => {
  const told: unknown[] = [];
  const id = await world.newSchedule({ attemptTimeoutMs: 1_000, retry: { maxAttempts: 1 } as never });
  await world.makeDue(id);
  await world.materialize([id]);
  await startWorker(endless(told));
  await until("it fails", async () => (await countRuns(world.admin)).failed === 1);
  expect(told).toEqual(["deadline"]);
  expect((await world.admin.query("select error_code from run")).rows).toEqual([{ error_code: "attempt-timeout" }]);
});

test("a handler that throws is tried again after its pause, with a fence of its own", async () => {
  const fences: bigint[] = [];
  const id = await world.newSchedule({ retry: { maxAttempts: 3, maxElapsedMs: 60_000, baseMs: 1, capMs: 50 } });
  await world.makeDue(id);
  await world.materialize([id]);
  await startWorker((ctx) => {
    fences.push(ctx.run.fence);
    if (ctx.run.attempt < 3) throw new Error("not yet");
  });
  await allSucceed(world.admin, 1);
  expect(fences).toHaveLength(3);
  expect(fences).toEqual(fences.toSorted((a, b) => Number(a - b)));
});

test("a worker that is asked to stop fetches nothing, lets attempts end, gives back the rest, and beats its heart until then", async () => {
  await start({ roles: ["sweeper"], url: world.url });
  await bear(3);
  const told: unknown[] = [];
  let ended = false;
  const first = await startWorker(
    async (ctx) => {
      if (told.length > 0 || ended) throw new Error("nothing may start any more");
      const { rows } = await world.admin.query("select count(*)::int as n from live_run where state = 'running'");
      if (rows[0].n < 2) await until("both run", async () => (await countRuns(world.admin)).running === 2);
      const oldest = (await world.admin.query("select id from run order by scheduled_at limit 1")).rows[0].id;
      if (ctx.run.id === showId("run", oldest)) {
        // Ends by itself, within the grace but after its first lease would have been over.
        await sleep(3_000);
        ended = true;
      } else await endless(told)(ctx, {});
    },
    { PUNCTUAL_SLOTS_SHORT: "2", PUNCTUAL_GRACE_MS: "4000" },
    { leases: "short" },
  );
  await until("both run", async () => (await countRuns(world.admin)).running === 2);
  await first.stop();
  expect(ended).toBe(true);
  expect(told).toEqual(["shutdown"]);
  expect(await countRuns(world.admin)).toEqual({ queued: 1, retrying: 1, succeeded: 1 });
  const { rows: attempts } = await world.admin.query(
    "select outcome from attempt a join live_run l on l.id = a.run_id order by a.started_at",
  );
  expect(attempts).toEqual([{ outcome: "released" }]);
  // No back-off and no spent attempt: it may start at once.
  const { rows } = await world.admin.query(
    "select interruptions, expiries, not_before <= clock_timestamp() as at_once from live_run where state = 'retrying'",
  );
  expect(rows).toEqual([{ interruptions: 1, expiries: 0, at_once: true }]);

  await startWorker(() => undefined);
  await allSucceed(world.admin, 3);
});

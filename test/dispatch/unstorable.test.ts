import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import type { JobContext } from "../../src/handlers/context.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { startNode, until } from "../support/system.ts";
import { createWorld } from "../support/world.ts";

const NUL = "\0";
const HALF = "\ud800";

/** What jobs say that no database, and no JSON, can hold; and how their runs end. */
const DEEDS: Readonly<Record<string, { ends: string; work: (ctx: JobContext) => unknown }>> = {
  good: { ends: "succeeded", work: () => undefined },
  "an error with NUL, half a pair and a stack of 1 MB": {
    ends: "succeeded",
    work(ctx) {
      if (ctx.run.attempt > 1) return;
      throw Object.assign(new Error(`bad${NUL}${HALF} ${"x".repeat(1_000_000)}`), { stack: "at x\n".repeat(200_000) });
    },
  },
  "a result with NUL": { ends: "result-invalid", work: () => ({ r: NUL }) },
  "a BigInt for a result": { ends: "result-invalid", work: () => 1n },
  "an output whose name has NUL": {
    ends: "object-name-invalid",
    work: () => ({ output: { name: `r${NUL}`, mediaType: "text/plain", bytes: Buffer.from("x") } }),
  },
  "progress with NUL and a BigInt, then what is no JSON": {
    ends: "succeeded",
    async work(ctx) {
      const cycle: Record<string, unknown> = { n: 1n };
      ctx.progress({ ...cycle, [`k${NUL}`]: `v${NUL}${HALF}` });
      cycle.cycle = cycle;
      ctx.progress(cycle);
      ctx.progress("x".repeat(4_001));
      await sleep(2_000);
    },
  },
};

test("B45 B46 what nobody can store fails its own attempt, clearly and once; the reports beside it are written", async () => {
  const world = await createWorld();
  const job = defineJob({
    name: "test.noop",
    version: 1,
    input: z.object({ deed: z.string() }),
    run: (ctx, { deed }) => DEEDS[deed]!.work(ctx) as undefined,
  });
  const deeds = new Map<string, string>();
  for (const deed of Object.keys(DEEDS)) {
    const retry = { maxAttempts: 3, maxElapsedMs: 600_000, baseMs: 1, capMs: 5 };
    const id = await world.newSchedule({ payload: { deed }, retry, key: deed });
    deeds.set(id, deed);
    await world.makeDue(id);
  }
  await world.materialize([...deeds.keys()]);
  const node = await startNode({ roles: ["worker"], url: world.url, jobs: [job] });
  await until("every run ends", async () => (await world.live()).length === 0);
  await node.stop();

  const { rows: runs } = await world.admin.query(
    "select schedule_id, state, attempts, error_code, error_message from run",
  );
  const byDeed = new Map(runs.map((run) => [deeds.get(run.schedule_id)!, run]));
  const ends = Object.fromEntries([...byDeed].map(([deed, run]) => [deed, run.error_code ?? run.state]));
  expect(ends).toEqual(Object.fromEntries(Object.entries(DEEDS).map(([deed, { ends: end }]) => [deed, end])));
  for (const [deed, run] of byDeed) expect([deed, run.attempts]).toEqual([deed, deed.startsWith("an error") ? 2 : 1]);
  expect(byDeed.get("a BigInt for a result")!.error_message).toContain("the job returned bigint; allowed: nothing");

  const { rows: attempts } = await world.admin.query(
    `select r.schedule_id, a.n, a.outcome, a.error_message, a.progress from attempt a join run r on r.id = a.run_id
      where a.outcome is not null or a.progress is not null`,
  );
  const told = attempts.map((one) => ({ ...one, deed: deeds.get(one.schedule_id)! }));
  const failed = told.find((one) => one.deed.startsWith("an error"));
  expect(failed).toMatchObject({ n: 1, outcome: "failed" });
  expect(failed!.error_message).toMatch(/^bad\uFFFD\uFFFD x+ …$/);
  expect(failed!.error_message.length).toBeLessThanOrEqual(4000);
  // Of progress the last thing that can be kept is kept.
  const shown = told.find((one) => one.deed.startsWith("progress"));
  expect(shown?.progress).toEqual({ n: "1", "k\uFFFD": "v\uFFFD\uFFFD" });
  await world.check();
  await world.close();
});

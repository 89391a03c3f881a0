import { afterAll, expect, it } from "vitest";
import { executeHandler } from "../../src/handlers/execute.ts";
import { runDurations } from "../../src/handlers/jobs/run-durations.ts";
import { runFunctions } from "../../src/handlers/kinds.ts";
import { createRegistry } from "../../src/handlers/registry.ts";
import type { RunSummaryRow } from "../../src/handlers/run-reader.ts";
import { createThreadPool } from "../../src/handlers/threads/pool.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";
import { RUN_AT, testContext } from "./context.ts";
import { mixedRuns, runRow } from "./runs.ts";

const threads = createThreadPool({
  clock: systemClock,
  log: silentLog,
  metrics: createMetrics(),
  size: 1,
  memoryMb: 256,
});
afterAll(() => threads.stop());

const kinds = { function: runFunctions(createRegistry([runDurations]), { threads }) };
const job = { kind: "function", name: runDurations.name, version: 1 } as const;

async function report(payload: Record<string, unknown>, pages: () => Iterable<readonly RunSummaryRow[]>) {
  const ctx = testContext({ pages });
  expect(await executeHandler(kinds, job, ctx, payload as never)).toMatchObject({
    kind: "succeeded",
    output: { name: "durations.csv", mediaType: "text/csv; charset=utf-8" },
  });
  return { lines: ctx.staged[0]!.text.split("\r\n").slice(0, -1), ctx };
}

it("tells how long runs waited and worked, a line for each schedule, in percentiles of all of them", async () => {
  const at = (n: number) => RUN_AT - n * 60_000;
  const run = (n: number, waitedMs: number, changes: Partial<RunSummaryRow> = {}) =>
    runRow(at(n), { startedAt: at(n) + waitedMs, finishedAt: at(n) + waitedMs + 1_000, ...changes });
  const hundred = Array.from({ length: 100 }, (_, i) => run(i, i + 1));
  const { lines, ctx } = await report({}, () => [
    hundred,
    [
      run(1, 5, { scheduleName: "=cmd()", state: "failed" }),
      run(2, 5, { scheduleName: "never", startedAt: null, finishedAt: null, state: "skipped" }),
    ],
  ]);
  expect(lines).toEqual([
    "\uFEFFschedule,runs,succeeded,failed,waited_p50_ms,waited_p95_ms,waited_p99_ms,waited_max_ms,worked_p50_ms,worked_p95_ms,worked_p99_ms,worked_max_ms",
    "'=cmd(),1,0,1,5,5,5,5,1000,1000,1000,1000",
    "Daily report,100,100,0,50,95,99,100,1000,1000,1000,1000",
    "never,1,0,0,,,,,,,,",
  ]);
  expect(ctx.shown.at(-1)).toEqual({ runs: 102 });
});

it("a report on 100,000 runs is computed while the event loop goes on", async () => {
  let turns = 0;
  let isOver = false;
  const turning = (async () => {
    while (!isOver) {
      turns++;
      await new Promise(setImmediate);
    }
  })();
  const { lines } = await report({ by: "hour" }, () => mixedRuns(100_000, 24 * 3_600_000));
  isOver = true;
  await turning;
  expect(lines).toHaveLength(25);
  expect(turns).toBeGreaterThan(100);
});

import { once } from "node:events";
import { afterAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { executeHandler } from "../../../src/handlers/execute.ts";
import { runFunctions } from "../../../src/handlers/kinds.ts";
import { createRegistry, defineThreadJob } from "../../../src/handlers/registry.ts";
import { createThreadPool } from "../../../src/handlers/threads/pool.ts";
import { type Clock, systemClock } from "../../../src/kernel/clock.ts";
import { createLog, silentLog } from "../../../src/kernel/log.ts";
import { createMetrics } from "../../../src/kernel/metrics.ts";
import { RUN_AT, type TestContext, testContext } from "../context.ts";

const shared = { clock: systemClock, log: silentLog, metrics: createMetrics() };
/** One thread: who comes second gets what the first has left. */
const threads = createThreadPool({ ...shared, size: 1, memoryMb: 64, graceMs: 200 });
afterAll(() => threads.stop());

const job = defineThreadJob({
  name: "test.deeds",
  version: 1,
  input: z.object({ deed: z.string(), posted: z.instanceof(Int32Array).optional() }),
  module: new URL("./deeds.ts", import.meta.url).href,
});
const kinds = { function: runFunctions(createRegistry([job]), { threads }) };

const perform = (deed: string, ctx: TestContext = testContext()) =>
  executeHandler(kinds, { kind: "function", name: job.name, version: job.version }, ctx, { deed });

type Expected = { transient: boolean; code: string; message?: string | RegExp };

describe("a job in a thread", () => {
  it("has the context of every job: it reads, tells, prints and stages", async () => {
    const run = { id: "run-1", scheduledAt: RUN_AT };
    const ctx = testContext({ pages: () => [[run], [{ ...run, id: "run-2" }]] as never });
    const lines: string[] = [];
    const log = createLog({ level: "info", role: "test", destination: { write: (line) => void lines.push(line) } });
    expect(await perform("good", { ...ctx, log })).toMatchObject({
      kind: "succeeded",
      output: { name: "report.txt" },
    });
    expect(ctx.staged[0]!.text).toBe(`${ctx.run.id} 1 run-1,run-2${"x".repeat(200_000)}`);
    expect(ctx.shown).toEqual([{ rows: "12" }]);
    expect(ctx.captured).toEqual(["printed\n", "captured\n"]);
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ level: "warn", rows: 3, msg: "three rows" }]);
  });

  it.each([
    ["a failure of its own", { transient: false, code: "no-such-account", message: "the bank does not know it" }],
    ["an error that cannot be sent", { transient: true, code: "handler-error", message: "odd" }],
    ["a result that is none", { transient: false, code: "result-invalid" }],
    ["an output that breaks", { transient: true, code: "handler-error", message: /page 2 is missing/ }],
    ["a throw in a timer", { transient: true, code: "handler-error", message: "thrown in a timer" }],
    ["a stray rejection", { transient: true, code: "handler-error", message: "nobody waits for it" }],
    ["process.exit", { transient: true, code: "process-exit", message: /exit code 3/ }],
    ["too many objects", { transient: true, code: "memory-exceeded", message: /64 MB/ }],
    ["too large an array", { transient: true, code: "memory-exceeded", message: /64 MB/ }],
    ["too many buffers", { transient: true, code: "memory-exceeded", message: /64 MB/ }],
  ])("fails alone: %s", async (deed, { message = /./, ...failure }: Expected) => {
    expect(await perform(deed)).toMatchObject({ kind: "failed", ...failure, message: expect.stringMatching(message) });
    // The next one finds a good thread.
    expect(await perform("detached")).toEqual({ kind: "detached", callbackWithinMs: 5_000 });
  });

  it.each(["an endless loop", "a loop that asks its signal"])("ends when it is told to: %s", async (deed) => {
    const stop = new AbortController();
    const begun = performance.now();
    const outcome = perform(deed, testContext({ signal: stop.signal }));
    const timer = systemClock.after(300, () => stop.abort("deadline"));
    expect(await outcome).toMatchObject({ code: "aborted" });
    timer.cancel();
    expect(performance.now() - begun).toBeGreaterThan(250);
    expect(await perform("detached")).toMatchObject({ kind: "detached" });
  });

  it("goes no faster than it is heard", async () => {
    const posted = new Int32Array(new SharedArrayBuffer(4));
    const ctx = testContext();
    let unread = 0;
    ctx.capture = () => {
      if (unread > 0) return;
      // Deaf for a while: the thread can say no more than it may leave unread.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      unread = Atomics.load(posted, 0);
    };
    const payload = { deed: "counted lines", posted } as never;
    expect(await executeHandler(kinds, { kind: "function", name: job.name, version: 1 }, ctx, payload)).toEqual({
      kind: "succeeded",
    });
    expect(unread).toBeGreaterThan(0);
    expect(unread).toBeLessThanOrEqual(64);
    expect(Atomics.load(posted, 0)).toBe(5_000);
  });

  it("is cut where it says too much at once, and what cannot be cut is left out", async () => {
    const ctx = testContext();
    expect(await perform("a flood of lines", ctx)).toEqual({ kind: "succeeded" });
    expect(ctx.shown).toEqual([]);
    expect(Math.max(...ctx.captured.map((one) => one.length))).toBe(65_536);
  });

  it("leaves nothing to the next in its thread", async () => {
    expect(await perform("something left behind")).toEqual({ kind: "succeeded" });
    expect(await perform("patient")).toEqual({ kind: "succeeded" });
  });

  it("waits for its turn, and not after it was told to stop", async () => {
    const stop = new AbortController();
    const first = perform("patient");
    const second = perform("patient", testContext({ signal: stop.signal }));
    const aborted = once(stop.signal, "abort");
    stop.abort("canceled");
    await aborted;
    expect(await second).toMatchObject({ code: "aborted", message: "canceled" });
    expect(await first).toEqual({ kind: "succeeded" });
  });

  it("is looked at for its memory once at a time, however many begin together", async () => {
    let looks = 0;
    let most = 0;
    const clock: Clock = {
      ...systemClock,
      after(ms, fn) {
        if (ms !== 100) return systemClock.after(ms, fn);
        most = Math.max(most, ++looks);
        return systemClock.after(ms, () => {
          looks--;
          fn();
        });
      },
    };
    const pool = createThreadPool({ ...shared, clock, size: 3, memoryMb: 64 });
    const places = { function: runFunctions(createRegistry([job]), { threads: pool }) };
    const work = { kind: "function", name: job.name, version: job.version } as const;
    const all = [1, 2, 3].map(() => executeHandler(places, work, testContext(), { deed: "patient" }));
    expect(await Promise.all(all)).toEqual([1, 2, 3].map(() => ({ kind: "succeeded" })));
    await pool.stop();
    expect(most).toBe(1);
  });

  it("is refused at the start where its module is not there", () => {
    const lost = (module: string) => () =>
      createRegistry([defineThreadJob({ name: "lost", version: 2, input: z.object({}), module })]);
    expect(lost(new URL("./nowhere.ts", import.meta.url).href)).toThrow(
      `The module of lost@2 is not there: ${import.meta.dirname}/nowhere.ts`,
    );
    expect(lost("./deeds.ts")).toThrow('The module of lost@2 is no URL: found "./deeds.ts"; allowed: new URL(');
  });

  it("is refused where there are no threads", async () => {
    const job1 = { kind: "function", name: job.name, version: 1 } as const;
    const without = { function: runFunctions(createRegistry([job])) };
    expect(await executeHandler(without, job1, testContext(), { deed: "detached" })).toMatchObject({
      code: "threads-unavailable",
    });
  });
});

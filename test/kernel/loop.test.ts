import { expect, it } from "vitest";
import { systemClock } from "../../src/kernel/clock.ts";
import { operatorError } from "../../src/kernel/errors.ts";
import { createLog } from "../../src/kernel/log.ts";
import { createLoop } from "../../src/kernel/loop.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";

/** The lines of a loop whose passes end so, one after the other, 100 s apart. */
async function linesOf(passes: readonly (Error | "well")[]): Promise<Record<string, unknown>[]> {
  const lines: Record<string, unknown>[] = [];
  const log = createLog({
    level: "info",
    role: "test",
    destination: { write: (line) => lines.push(JSON.parse(line)) },
  });
  let nowMs = 0;
  const sleep = async () => {
    nowMs += 100_000;
  };
  const clock = { ...systemClock, monotonic: () => nowMs, sleep };
  const left = [...passes];
  await new Promise<void>((resolve) => {
    const loop = createLoop(
      {
        name: "tried",
        everyMs: 1,
        idleMs: 1,
        async pass() {
          const end = left.shift();
          if (end instanceof Error) throw end;
          if (end === undefined) void loop.stop().then(resolve);
          return { did: 0, more: false };
        },
      },
      { clock, log, metrics: createMetrics() },
    );
    void loop.start();
  });
  return lines;
}

it("a loop whose passes fail again and again says so once in five minutes, at once where it is something else", async () => {
  const [one, two] = [new Error("one"), new Error("two")];
  const lines = await linesOf([one, one, one, two, one, "well", one, ...Array(5).fill(two)]);
  expect(lines.map(({ reason }) => reason)).toEqual(["one", "two", "one", "one", "two", "two"]);
  expect(lines[0]).toMatchObject({ loop: "tried", level: "error", err: { stack: expect.any(String) } });
});

it("a loop that waits for an operator says what for in one line, without a stack", async () => {
  const [line] = await linesOf([operatorError("away", "nobody answers", {}, new Error("ENOENT"))]);
  expect(line).toMatchObject({ reason: "nobody answers", msg: "a pass failed, the loop goes on" });
  expect(line).not.toHaveProperty("err");
});

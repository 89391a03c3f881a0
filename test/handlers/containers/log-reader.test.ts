import { expect, it, onTestFinished } from "vitest";
import type { LogChunk } from "../../../src/handlers/containers/engine.ts";
import { type LogReader, readLog } from "../../../src/handlers/containers/log-reader.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { until } from "../../support/system.ts";

/** An engine's log of one container, as the engine has it now. */
type Kept = {
  stdout: string;
  stderr: string;
  /** How much of it a reading gets before it breaks off, or (`isOver`) before the engine says that that is all. */
  upTo?: { bytes: number; isOver: boolean };
};

function reading(kept: Kept): { log: LogReader; said(): string; readings(): number } {
  const chunks: Uint8Array[] = [];
  let readings = 0;
  async function* logs(_id: string, { follow }: { follow: boolean }): AsyncGenerator<LogChunk> {
    readings++;
    const upTo = follow ? kept.upTo : undefined;
    for (const stream of ["stdout", "stderr"] as const) {
      const bytes = Buffer.from(kept[stream]).subarray(0, upTo?.bytes);
      for (let at = 0; at < bytes.length; at += 1_000) yield { stream, bytes: bytes.subarray(at, at + 1_000) };
    }
    if (upTo?.isOver === false) throw new Error("broken off");
  }
  const log = readLog({ logs }, "c", {
    clock: systemClock,
    mostBytes: Number.POSITIVE_INFINITY,
    take: (chunk) => void chunks.push(chunk),
  });
  onTestFinished(() => log.stop());
  return { log, said: () => Buffer.concat(chunks).toString(), readings: () => readings };
}

const lines = (from: number, to: number) => Array.from({ length: to - from }, (_, n) => `line ${from + n}\n`).join("");
const SHORT = 1_000;
const LONG = 100_000;

it.each([
  ["a short log", SHORT],
  ["a long log", LONG],
])("%s whose end a followed reading has not come to is read to its end, each byte once", async (_, count) => {
  for (const isOver of [true, false]) {
    const stdout = lines(0, count);
    const { log, said } = reading({ stdout, stderr: "", upTo: { bytes: stdout.length - 5_003, isOver } });
    await until("it is followed", () => said().length === stdout.length - 5_003);
    await log.finish();
    expect(said()).toBe(stdout);
    expect([log.total, log.ofStdout, log.tail().endsWith(`line ${count - 1}\n`)]).toEqual([
      stdout.length,
      stdout.length,
      true,
    ]);
  }
});

it("each stream of a log has its own end", async () => {
  const kept = { stdout: lines(0, 500), stderr: lines(5_000, 5_500), upTo: { bytes: 1_234, isOver: true } };
  const { log, said } = reading(kept);
  await until("it is followed", () => said().length === 2 * 1_234);
  await log.finish();
  expect(said().length).toBe(kept.stdout.length + kept.stderr.length);
  expect(said().slice(2 * 1_234)).toBe(kept.stdout.slice(1_234) + kept.stderr.slice(1_234));
});

it("a log whose beginning the engine has dropped goes on with a whole line, and says nothing twice", async () => {
  const whole = lines(0, LONG);
  const kept: Kept = { stdout: whole.slice(0, 600_000), stderr: "", upTo: { bytes: 600_000, isOver: false } };
  const { log, said, readings } = reading(kept);
  await until("it is followed", () => said().length === 600_000);
  kept.stdout = whole.slice(200_000);
  kept.upTo = { bytes: 700_000, isOver: false };
  await until("it is followed again", () => readings() > 2);
  await log.finish();
  expect(said().slice(0, 600_000)).toBe(whole.slice(0, 600_000));
  const more = said().slice(600_000);
  expect(whole.endsWith(`\n${more}`)).toBe(true);
  expect(whole.length - more.length - 800_000).toBeLessThan(20);
});

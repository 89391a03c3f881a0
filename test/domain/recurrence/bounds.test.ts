import { execFile } from "node:child_process";
import { promisify } from "node:util";
import fc from "fast-check";
import { expect, it } from "vitest";
import { loadBundledTzData } from "../../../src/app/tz-data.ts";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import type { CompiledCron } from "../../../src/domain/recurrence/compiled.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import { transitionsOfYear } from "../../../src/domain/recurrence/posix-tz.ts";
import { firstReading, makeZone, offsetAt, type Zone } from "../../../src/domain/recurrence/zone.ts";
import type { Policy } from "./oracle.ts";
import { expression, policy } from "./random-rules.ts";
import { compiled, cron, zones } from "./support.ts";

/** Months looked at by one question: the search goes by months, so this is its work, whatever the machine. */
function monthsLookedAt(rule: CompiledCron, after: number): number {
  let months = 0;
  const pattern = {
    ...rule.pattern,
    get months() {
      months += 1;
      return rule.pattern.months;
    },
  };
  nextAfter({ ...rule, pattern, memo: { after: Number.POSITIVE_INFINITY, next: Number.NEGATIVE_INFINITY } }, after);
  return months;
}

/** 400 years of months, and a few for each of their clock changes: about 1 ms. */
const MONTHS_AT_MOST = 10_000;

it.each([
  ["0 0 * 2 1#5", "2016-02-29T00:00:00Z", "2044-02-29T00:00:00.000Z"],
  ["0 0 29 2 */7", "2004-03-01T00:00:00Z", "2032-02-29T00:00:00.000Z"],
  ["0 0 29 2 *", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00.000Z"],
])("%s is found across decades with little work", (expression, from, expected) => {
  const rule = compiled(cron(expression)) as CompiledCron;
  expect(new Date(nextAfter(rule, Date.parse(from))!).toISOString()).toBe(expected);
  expect(monthsLookedAt(rule, Date.parse(from))).toBeLessThan(500);
});

it("the sparsest rules cost a bounded search, in every zone and under every policy", () => {
  const time = fc.constantFrom("0 0", "30 2", "* *", "*/7 2", "0 */5", "59 23");
  const days = fc.constantFrom(
    "* 2 1#5",
    "29 2 */7",
    "29 2 *",
    "31 1 */6",
    "31W 12 */5",
    "L-30 1 ?",
    "29 2 ?",
    "* 2 0#5",
  );
  const from = fc.oneof(
    fc.integer({ min: -2e12, max: 8e12 }),
    fc.constantFrom(253_402_300_799_999, 253_300_000_000_000, -62_167_219_200_000),
  );
  let most = 0;
  fc.assert(
    fc.property(
      time,
      days,
      policy,
      fc.constantFrom(...zones.names),
      from,
      (clock, day, choice: Policy, zone, after) => {
        const compilation = compileRule(cron(`${clock} ${day}`, zone, choice), zones);
        if (!compilation.ok) return;
        most = Math.max(most, monthsLookedAt(compilation.rule as CompiledCron, after));
        expect(most).toBeLessThan(MONTHS_AT_MOST);
      },
    ),
    { numRuns: 400 },
  );
  expect(most, "the counter counts").toBeGreaterThan(100);
});

it("a rule that has no further instant says so after a bounded search, too", () => {
  const rule = compiled(cron("0 0 29 2 *", "America/New_York", { overlap: "last" })) as CompiledCron;
  const last = Date.parse("9996-03-01T12:00:00Z");
  expect(nextAfter(rule, last)).toBeNull();
  expect(monthsLookedAt(rule, last)).toBeLessThan(MONTHS_AT_MOST);
});

it("the far future is no work either, and no memory: its clocks are those of a cycle of 400 years before", () => {
  const { zones: fresh } = loadBundledTzData();
  const from = fc.integer({ min: Date.parse("2700-01-01T00:00:00Z"), max: Date.parse("9990-01-01T00:00:00Z") });
  const some = fc.constantFrom(
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Asia/Gaza",
    "Asia/Tokyo",
  );
  fc.assert(
    fc.property(expression, policy, some, from, ({ text }, choice, name, after) => {
      const far = fresh.findZone(name)!;
      // A zone that lists the changes of those years, and so has no need of cycles.
      const year = new Date(after).getUTCFullYear();
      const near = [-2, -1, 0, 1].flatMap((k) => transitionsOfYear(far.rule, year + k));
      const listed = makeZone(name, near.at(-1)?.offset ?? far.rule.standardOffset, near, far.rule);
      const ask = (zone: Zone) => {
        const compilation = compileRule(cron(text, name, choice), { ...fresh, findZone: () => zone });
        return compilation.ok ? nextAfter(compilation.rule, after) : "refused";
      };
      expect(ask(far)).toBe(ask(listed));
      expect(offsetAt(far, after / 1000)).toBe(offsetAt(listed, after / 1000));
      const wall = Math.floor(after / 1000);
      expect(firstReading(far, wall)).toBe(firstReading(listed, wall));
    }),
    { numRuns: 500 },
  );
  for (const name of fresh.names) expect(fresh.findZone(name)!.at.length).toBeLessThan(4000);
});

it("rules beyond number fit in a small heap: what is remembered is bounded", async () => {
  const report = new URL("memory-report.ts", import.meta.url).pathname;
  const run = promisify(execFile);
  const { stdout } = await run(process.execPath, ["--max-old-space-size=128", report, "60000"]);
  const { asked, heapMiB } = JSON.parse(stdout) as { asked: number; heapMiB: number };
  expect(asked).toBe(60_000);
  expect(heapMiB).toBeLessThan(128);
});

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompiledRule, compileRule } from "../../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import { dueMinutes } from "./oracle.ts";
import { expression, ODD_START, oddJumps, oddZone, policy, quarterHours, zoneAndMoment } from "./random-rules.ts";
import { compiled, cron, zones } from "./support.ts";

/** The rule's instants in `from` < t < `to`, all in epoch seconds. */
function walk(rule: CompiledRule, from: number, to: number): number[] {
  const found: number[] = [];
  let at = nextAfter(rule, from * 1000);
  while (at !== null && at < to * 1000) {
    found.push(at / 1000);
    at = nextAfter(rule, at);
  }
  return found;
}

describe("nextAfter", () => {
  it("agrees with a literal walk, minute by minute, through clock changes of every kind and under every policy", () => {
    fc.assert(
      fc.property(expression, policy, zoneAndMoment, ({ text, timing, matches }, choice, { zone, from }) => {
        const compilation = compileRule(cron(text, zone, choice), zones);
        if (!compilation.ok) return;
        const to = from + 2 * 86_400;
        const due = dueMinutes(zones.findZone(zone)!, from, to, matches, timing === "shown" ? "as shown" : choice);
        expect(walk(compilation.rule, from, to)).toEqual(due);
      }),
      { numRuns: 200 },
    );
  });

  it("agrees with it too in zones stranger than any on earth, whose clocks jump again before the last jump is over", () => {
    fc.assert(
      fc.property(expression, policy, oddJumps, quarterHours(0, 400), (rule, choice, list, delay) => {
        const zone = oddZone(list);
        fc.pre(zone !== undefined);
        const source = { version: "odd", names: ["Odd/Zone"], findZone: () => zone, textOf: () => undefined };
        const compilation = compileRule(cron(rule.text, "Odd/Zone", choice), source);
        if (!compilation.ok) return;
        const from = ODD_START + delay - 86_400;
        const to = from + 2 * 86_400;
        const due = dueMinutes(zone, from, to, rule.matches, rule.timing === "shown" ? "as shown" : choice);
        expect(walk(compilation.rule, from, to)).toEqual(due);
      }),
      { numRuns: 200 },
    );
  });

  it("only ever moves forward, and gives the same answer from anywhere before it", () => {
    const whenever = fc.oneof(
      zoneAndMoment,
      fc.record({ zone: fc.constantFrom(...zones.names), from: fc.integer({ min: -5e9, max: 2.5e11 }) }),
    );
    fc.assert(
      fc.property(
        expression,
        policy,
        whenever,
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (rule, choice, { zone, from }, part) => {
          const compilation = compileRule(cron(rule.text, zone, choice), zones);
          if (!compilation.ok) return;
          const ask = (at: number) => {
            nextAfter(compilation.rule, 0); // the memo forgets what it knew
            return nextAfter(compilation.rule, at);
          };
          const after = from * 1000 + part;
          const next = ask(after);
          if (next === null) return;
          expect(next).toBeGreaterThan(after);
          expect(Number.isInteger(next)).toBe(true);
          expect(ask(next - 1)).toBe(next);
          expect(ask(Math.min(after + (next - after) * part, next - 1))).toBe(next);
          const following = ask(next);
          expect(following === null || following > next).toBe(true);
        },
      ),
      { numRuns: 1000 },
    );
  });

  it("never throws for a rule that was accepted, whatever the instant", () => {
    const moment = fc.oneof(
      fc.double(),
      fc.integer({ min: -8.64e15, max: 8.64e15 }),
      fc.constantFrom(253_402_300_799_999, 253_402_300_799_998, -62_167_219_200_000),
    );
    fc.assert(
      fc.property(expression, policy, fc.constantFrom(...zones.names), moment, (rule, choice, zone, at) => {
        const compilation = compileRule(cron(rule.text, zone, choice), zones);
        if (!compilation.ok) return;
        const next = nextAfter(compilation.rule, at);
        expect(next === null || next > at).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it("takes any text for an expression or a zone without throwing", () => {
    const alphabet = fc.constantFrom(..."0123456789*?/,-#LWHSUNMONJAN@ \t\n".split(""), "٣", "é", "0 0 ", "* * ");
    const text = fc.oneof(fc.string({ unit: alphabet, maxLength: 40 }), fc.string({ unit: "binary", maxLength: 250 }));
    fc.assert(
      fc.property(text, fc.oneof(fc.constant("UTC"), text), fc.boolean(), (written, zone, seconds) => {
        const compilation = compileRule({ kind: "cron", expression: written, zone, seconds }, zones);
        if (compilation.ok) nextAfter(compilation.rule, 0);
        else expect(compilation.fault.found.length).toBeLessThan(100);
      }),
      { numRuns: 3000 },
    );
  });

  it("does not remember what it answered to another question", () => {
    const rule = compiled(cron("*/15 * * * *", "Europe/Berlin"));
    const at = Date.parse("2026-06-01T12:00:00Z");
    const answers = [at, at - 1, at + 1, at + 900_000, at, at - 900_000].map((one) => nextAfter(rule, one)! - at);
    expect(answers).toEqual([900_000, 0, 900_000, 1_800_000, 900_000, 0]);
  });
});

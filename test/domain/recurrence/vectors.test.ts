import { describe, expect, it } from "vitest";
import { compileRule } from "../../../src/domain/recurrence/compile.ts";
import { type CronVector, calendarCases, cron, instants, vectorLines, zones } from "./support.ts";

type SyntaxVector = { id: string; expr: string; tz: string; verdict: "accept" | "reject"; note: string };

describe("instants that an independent brute-force oracle found", () => {
  it.each(vectorLines<CronVector>("cron.jsonl"))("$id $expr in $tz", (row) => {
    expect(instants(cron(row.expr, row.tz), row.from, row.count)).toEqual(row.expected);
    // Where a choice changes nothing, the vectors leave it out: it must then give the ordinary instants.
    const shifted = instants(cron(row.expr, row.tz, { gap: "shift" }), row.from, row.count);
    expect(shifted).toEqual(row.expectedShift ?? row.expected);
    const skipped = instants(cron(row.expr, row.tz, { gap: "skip" }), row.from, row.count);
    // They also leave it out where every instant lies in a gap, as at 02:30 on the American day of change.
    expect(skipped).toEqual(row.expectedSkip ?? (skipped.length === 0 ? [] : row.expected));
  });
});

describe("expressions and zones that are accepted or refused", () => {
  it.each(vectorLines<SyntaxVector>("cron-syntax.jsonl"))("$id $verdict $expr in $tz: $note", (row) => {
    const compilation = compileRule(cron(row.expr, row.tz), zones);
    expect(compilation.ok ? "accept" : "reject").toBe(row.verdict);
    if (!compilation.ok) expect(compilation.fault).toMatchObject({ message: expect.stringMatching(/\.$/) });
  });
});

describe("cases that broke other schedulers", () => {
  const { run, refused } = calendarCases();
  it.each(run)("$name", ({ expr, tz, after, expected }) => {
    expect(instants(cron(expr, tz), after, expected.length)).toEqual(expected);
  });
  it.each(refused)("$name is refused", ({ expr, tz }) => {
    expect(compileRule({ kind: "cron", expression: expr, zone: tz }, zones).ok).toBe(false);
  });
});

import { readFileSync } from "node:fs";
import { loadBundledTzData } from "../../../src/app/tz-data.ts";
import { type CompiledRule, compileRule } from "../../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import type { Zone } from "../../../src/domain/recurrence/zone.ts";
import type { ZoneSource } from "../../../src/domain/recurrence/zone-source.ts";

export const { zones } = loadBundledTzData();

/** The same zones; how often something was read of one is how much work it was, on any machine. */
export function countingLooks(): { zones: ZoneSource; looks(): number } {
  let looks = 0;
  const get = <K extends keyof Zone>(zone: Zone, key: K) => {
    looks++;
    return zone[key];
  };
  const findZone: ZoneSource["findZone"] = (name) => {
    const zone = zones.findZone(name);
    return zone && new Proxy(zone, { get: get as never });
  };
  return { zones: { ...zones, findZone }, looks: () => looks };
}

export type CronRule = Extract<Rule, { kind: "cron" }>;

export function cron(expression: string, zone = "UTC", choice: Partial<CronRule> = {}): CronRule {
  const hasSeconds = expression.trim().split(/\s+/).length === 6;
  return { kind: "cron", expression, zone, ...(hasSeconds ? { seconds: true } : {}), ...choice };
}

export function compiled(rule: Rule, source: ZoneSource = zones): CompiledRule {
  const compilation = compileRule(rule, source);
  if (!compilation.ok) throw new Error(`${JSON.stringify(rule)} was refused: ${JSON.stringify(compilation.fault)}`);
  return compilation.rule;
}

/** The first `count` instants after `from`, as ISO texts; fewer where the rule ends. */
export function instants(rule: Rule, from: string, count: number, source: ZoneSource = zones): string[] {
  const ready = compiled(rule, source);
  const found: string[] = [];
  let at: number | null = Date.parse(from);
  while (found.length < count) {
    at = nextAfter(ready, at);
    if (at === null) break;
    found.push(new Date(at).toISOString());
  }
  return found;
}

const VECTORS = new URL("../../vectors/", import.meta.url);

export function vectorLines<T>(file: string): T[] {
  return readFileSync(new URL(file, VECTORS), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as T);
}

export type CronVector = {
  id: string;
  expr: string;
  tz: string;
  from: string;
  count: number;
  expected: string[];
  expectedShift?: string[];
  expectedSkip?: string[];
};

type CaseRow = { expr: string; tz: string; after?: string; local?: string[]; local_first?: string[]; reject?: boolean };
type Case = { id: string; family: string; symptom: string; cases?: CaseRow[] };

export type CalendarCase = { name: string; expr: string; tz: string; after: string; expected: string[] };
export type RefusedCase = { name: string; expr: string; tz: string };

/** Rows of the families a (grammar) and b (zones), split into those that run and those that are refused. */
export function calendarCases(): { run: CalendarCase[]; refused: RefusedCase[] } {
  const all = JSON.parse(readFileSync(new URL("cases.json", VECTORS), "utf8")) as Case[];
  const run: CalendarCase[] = [];
  const refused: RefusedCase[] = [];
  for (const { id, family, cases = [] } of all) {
    if (family !== "a" && family !== "b") continue;
    for (const [k, row] of cases.entries()) {
      const name = `${id} row ${k + 1}: ${JSON.stringify(row.expr)} in ${JSON.stringify(row.tz)}`;
      // W is part of our grammar, so B04's "400 unless it is" does not apply.
      if (row.reject === true && row.expr !== "0 0 1W * *") refused.push({ name, expr: row.expr, tz: row.tz });
      // `local_first` is what follows where a text weighs two policies: the first valid instant after a gap, starred AND.
      const locals = row.local_first ?? row.local;
      if (locals === undefined || row.after === undefined) continue;
      run.push({ name, expr: row.expr, tz: row.tz, after: row.after, expected: locals.map(isoOfLocal) });
    }
  }
  return { run, refused };
}

/** `Sun 2026-03-29 03:00 +0200` as UTC. */
function isoOfLocal(text: string): string {
  const [, date, time, offset] = text.split(" ");
  return new Date(`${date}T${time}:00${offset?.slice(0, 3)}:${offset?.slice(3)}`).toISOString();
}

/** From what a tenant wrote to what the walk needs, or to the reason why not. */
import { LRUCache } from "lru-cache";
import type { CompiledCron, CompiledRule, CompiledSingle } from "./compiled.ts";
import { readExpression } from "./cron/grammar.ts";
import { canMatch, makePattern } from "./cron/pattern.ts";
import { FaultyRule, type RuleFault, refuse } from "./fault.ts";
import { outOfReach, readMoment } from "./moment.ts";
import type { CronRule, IntervalRule, Rule } from "./rule.ts";
import { requireZone } from "./zone-names.ts";
import type { ZoneSource } from "./zone-source.ts";

export type { CompiledRule } from "./compiled.ts";
export type { RuleFault } from "./fault.ts";

type Compilation =
  | { readonly ok: true; readonly rule: CompiledRule }
  | { readonly ok: false; readonly fault: RuleFault };

type SingleRule = Exclude<Rule, { kind: "anyOf" }>;

/** Rules repeat among schedules ("every weekday at nine"), and one compiled rule may serve any number of them. */
const COMPILED_AT_MOST = 10_000;
const compiledBySource = new WeakMap<ZoneSource, LRUCache<string, Compilation>>();

/** Compiles a rule that has the shape of `ruleSchema`. Never throws: what is wrong with a rule is a value. */
export function compileRule(rule: Rule, zones: ZoneSource): Compilation {
  const known = memoOf(zones);
  const key = JSON.stringify(rule);
  let compilation = known.get(key);
  if (compilation === undefined) {
    compilation = compileAnew(rule, zones);
    known.set(key, compilation);
  }
  return compilation;
}

function memoOf(zones: ZoneSource): LRUCache<string, Compilation> {
  let memo = compiledBySource.get(zones);
  if (memo === undefined) {
    memo = new LRUCache<string, Compilation>({ max: COMPILED_AT_MOST });
    compiledBySource.set(zones, memo);
  }
  return memo;
}

function compileAnew(rule: Rule, zones: ZoneSource): Compilation {
  try {
    if (rule.kind !== "anyOf") return { ok: true, rule: compileSingle(rule, zones) };
    return { ok: true, rule: { kind: "anyOf", rules: rule.rules.map((one, k) => compileMember(one, k, zones)) } };
  } catch (error) {
    if (error instanceof FaultyRule) return { ok: false, fault: error.fault };
    // A parser's own complaint, not foreseen above: still the rule's fault, and still an answer.
    const found = JSON.stringify(rule).slice(0, 80);
    const message = `The rule cannot be read: ${error instanceof Error ? error.message : String(error)}`;
    return { ok: false, fault: { field: "rule", found, message, allowed: "a rule as documented" } };
  }
}

function compileMember(rule: SingleRule, index: number, zones: ZoneSource): CompiledSingle {
  try {
    if (rule.kind === "afterCompletion") {
      const message = "A delay after completion has no instants of its own to join with others.";
      refuse({ field: "kind", found: rule.kind, message, allowed: "cron, interval, once or dates" });
    }
    return compileSingle(rule, zones);
  } catch (error) {
    if (error instanceof FaultyRule) refuse({ ...error.fault, field: `rules.${index}.${error.fault.field}` });
    throw error;
  }
}

function compileSingle(rule: SingleRule, zones: ZoneSource): CompiledSingle {
  switch (rule.kind) {
    case "cron":
      return compileCron(rule, zones);
    case "interval":
      return { kind: "interval", everyMs: intervalMs(rule), anchorAt: anchorOf(rule) };
    case "once":
      return compileDates("at", [rule.at], rule.zone, zones);
    case "dates":
      return compileDates("at", rule.at, rule.zone, zones);
    case "afterCompletion":
      return { kind: "afterCompletion", delayMs: rule.delayMs };
  }
}

function compileCron(rule: CronRule, zones: ZoneSource): CompiledCron {
  const zone = requireZone("zone", rule.zone, zones);
  const fields = readExpression(rule.expression, rule.seconds ?? false);
  const pattern = makePattern(fields);
  if (!canMatch(pattern)) {
    const message = "No date of any year matches both the day and the month fields, so this would never run.";
    refuse({ field: "expression", found: rule.expression, message, allowed: "an expression that some date matches" });
  }
  const timing = /[*?]/.test(fields.minute.text + fields.hour.text) ? "shown" : "fixed";
  return {
    kind: "cron",
    expression: rule.expression,
    fields,
    pattern,
    zone,
    timing,
    gap: rule.gap ?? "first",
    overlap: rule.overlap ?? "first",
    hasIdleChoice: timing === "shown" && (rule.gap !== undefined || rule.overlap !== undefined),
    memo: { after: Number.POSITIVE_INFINITY, next: Number.NEGATIVE_INFINITY },
  };
}

const UNIT_MS = { seconds: 1000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 } as const;
const LONGEST_INTERVAL_MS = 3_155_760_000_000; // a century

function intervalMs(rule: IntervalRule): number {
  const allowed = "`everyMs`, or `every` as { n, unit }; at most a century";
  if ((rule.everyMs === undefined) === (rule.every === undefined)) {
    const found = rule.every === undefined ? "neither" : "both";
    refuse({ field: "everyMs", found, message: "Exactly one of `everyMs` and `every` is needed.", allowed });
  }
  const ms = rule.everyMs ?? rule.every!.n * UNIT_MS[rule.every!.unit];
  if (ms > LONGEST_INTERVAL_MS)
    refuse({ field: "every", found: `${ms} ms`, message: "The interval is too long.", allowed });
  return ms;
}

function anchorOf(rule: IntervalRule): number {
  if (typeof rule.anchorAt === "string") return readMoment("anchorAt", rule.anchorAt, undefined).at;
  const fault = outOfReach("anchorAt", String(rule.anchorAt), rule.anchorAt);
  if (fault !== undefined) refuse(fault);
  return rule.anchorAt;
}

function compileDates(
  field: string,
  moments: readonly string[],
  zoneName: string | undefined,
  zones: ZoneSource,
): CompiledSingle {
  const zone = zoneName === undefined ? undefined : requireZone("zone", zoneName, zones);
  const read = moments.map((moment) => readMoment(field, moment, zone));
  const instants = [...new Set(read.map(({ at }) => at))].sort((a, b) => a - b);
  return {
    kind: "dates",
    instants,
    ...(zone === undefined ? {} : { local: { zone, walls: [...new Set(read.map(({ wall }) => wall))] } }),
  };
}

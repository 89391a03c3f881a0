import { loadBundledTzData } from "../../src/app/tz-data.ts";
import { type CompiledRule, compileRule } from "../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../src/domain/recurrence/next.ts";
import type { Rule } from "../../src/domain/recurrence/rule.ts";
import type { ZoneSource } from "../../src/domain/recurrence/zone-source.ts";

type Cron = Extract<Rule, { kind: "cron" }>;

const START_AT = Date.parse("2026-01-01T00:00:00Z");

const EVERYDAY: readonly Cron[] = [
  cron("0 9 * * MON-FRI", "America/New_York"),
  cron("*/15 * * * *", "Europe/Berlin"),
  cron("30 2 * * *", "Australia/Lord_Howe"),
  cron("45 2 * * *", "Pacific/Chatham"),
  cron("0 0 1 * *", "UTC"),
  cron("0 18 LW * *", "Asia/Kolkata"),
  cron("0 9 * * MON-FRI", "Africa/Casablanca", { gap: "shift", overlap: "both" }),
];

/** Rules whose next instant is years or decades away. */
const SPARSE: readonly Cron[] = [
  cron("0 0 * 2 1#5", "UTC"),
  cron("0 0 * 2 1#5", "America/New_York"),
  cron("0 0 29 2 */7", "Europe/Dublin", { gap: "shift", overlap: "last" }),
  cron("30 2 * 3 0#2", "America/New_York", { gap: "skip" }),
  cron("*/30 2 * 3 0#2", "America/New_York"),
];
const FAR = [START_AT, Date.parse("2044-03-01T00:00:00Z"), Date.parse("2096-03-01T00:00:00Z")];

/**
 * How fast the calendar is, on one core: instants a second while walking common rules, the worst sparse rule, a rule's
 * first compilation, a zone's first use. Asserts nothing: `ok` only says that it ran.
 */
export async function calendar() {
  const { zones } = loadBundledTzData();
  const walking = EVERYDAY.map((rule) => {
    const ready = compile(rule, zones);
    walk(ready, 20_000); // warm
    const count = 200_000;
    return { rule: nameOf(rule), perSecond: Math.round(count / (walk(ready, count) / 1000)) };
  });
  const sparse = SPARSE.map((rule) => {
    const first = FAR.map((at) => timed(() => nextAfter(compile(anew(rule), zones), at)));
    const ready = compile(rule, zones);
    const warm = Array.from({ length: 300 }, (_, k) => timed(() => nextAfter(ready, FAR[k % FAR.length]! + k)));
    warm.sort((a, b) => a - b);
    return { rule: nameOf(rule), firstMs: ms(Math.max(...first)), p50Ms: ms(warm[150]!), maxMs: ms(warm[299]!) };
  });
  return {
    bench: "calendar" as const,
    ok: true,
    nextAfterPerSecond: Math.min(...walking.map((one) => one.perSecond)),
    walking,
    sparse,
    compileUs: compileUs(zones),
    zoneFirstUseMs: zoneFirstUseMs(),
  };
}

function compileUs(zones: ZoneSource): number {
  const rounds = 1_000;
  const all = () => {
    for (let k = 0; k < rounds; k += 1) compile(anew(EVERYDAY[k % EVERYDAY.length]!), zones);
  };
  all(); // warm
  return ms((timed(all) / rounds) * 1_000);
}

/** Every zone there is, each asked for the first time by a fresh source: the slowest, and the middle one. */
function zoneFirstUseMs(): { zones: number; p50: number; max: number } {
  const { zones } = loadBundledTzData();
  const each = [...zones.names].map((zone) =>
    timed(() => nextAfter(compile(cron("0 9 * * *", zone), zones), START_AT)),
  );
  each.sort((a, b) => a - b);
  return { zones: each.length, p50: ms(each[each.length >> 1]!), max: ms(each.at(-1)!) };
}

function cron(expression: string, zone: string, choice: Partial<Cron> = {}): Cron {
  return { kind: "cron", expression, zone, ...choice };
}

let spaces = 0;

/** The same rule in a text that nobody has compiled. */
function anew(rule: Cron): Cron {
  spaces += 1;
  const [first, ...rest] = rule.expression.split(" ");
  const gaps = [" ".repeat(1 + (spaces % 100)), " ".repeat(1 + (Math.floor(spaces / 100) % 80))];
  return { ...rule, expression: [first, ...gaps, ...rest].join(" ") };
}

function compile(rule: Rule, zones: ZoneSource): CompiledRule {
  const compilation = compileRule(rule, zones);
  if (!compilation.ok) throw new Error(compilation.fault.message);
  return compilation.rule;
}

function walk(rule: CompiledRule, count: number): number {
  return timed(() => {
    let at: number | null = START_AT;
    for (let k = 0; k < count; k += 1) at = nextAfter(rule, at ?? START_AT);
  });
}

function nameOf(rule: Cron): string {
  return [rule.expression, rule.zone, rule.gap, rule.overlap].filter((part) => part !== undefined).join(" ");
}

function timed(work: () => unknown): number {
  const startAt = performance.now();
  work();
  return performance.now() - startAt;
}

function ms(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

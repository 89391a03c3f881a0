/** How fast the calendar is: `node ops/bench/calendar.ts`. Prints one line a measure; asserts nothing. */
import { loadBundledTzData } from "../../src/app/tz-data.ts";
import { type CompiledRule, compileRule } from "../../src/domain/recurrence/compile.ts";
import { toLocal } from "../../src/domain/recurrence/local.ts";
import { nextAfter } from "../../src/domain/recurrence/next.ts";
import type { Rule } from "../../src/domain/recurrence/rule.ts";

type Cron = Extract<Rule, { kind: "cron" }>;

let spaces = 0;

const START_AT = Date.parse("2026-01-01T00:00:00Z");

const loadStart = performance.now();
const { zones } = loadBundledTzData();
report("load bundled data", `${(performance.now() - loadStart).toFixed(1)} ms`);

const everyday: readonly Cron[] = [
  cron("0 9 * * MON-FRI", "America/New_York"),
  cron("*/15 * * * *", "Europe/Berlin"),
  cron("30 2 * * *", "Australia/Lord_Howe"),
  cron("45 2 * * *", "Pacific/Chatham"),
  cron("0 0 1 * *", "UTC"),
  cron("0 18 LW * *", "Asia/Kolkata"),
  cron("0 9 * * MON-FRI", "Africa/Casablanca", { gap: "shift", overlap: "both" }),
];

for (const rule of everyday) {
  const ready = compile(rule);
  walk(ready, 20_000); // warm
  const count = 200_000;
  const ms = walk(ready, count);
  report(`nextAfter, walking  ${rule.expression} ${rule.zone}${rule.gap ?? ""}`, perSecond(count, ms));
}

const shared = compile(everyday[0]!);
const start = performance.now();
for (let k = 0; k < 2_000_000; k += 1) nextAfter(shared, START_AT + (k % 1000));
report("nextAfter, a burst that shares a rule", perSecond(2_000_000, performance.now() - start));

const sparse: readonly Cron[] = [
  cron("0 0 * 2 1#5", "UTC"),
  cron("0 0 * 2 1#5", "America/New_York"),
  cron("0 0 29 2 */7", "Europe/Dublin", { gap: "shift", overlap: "last" }),
  cron("30 2 * 3 0#2", "America/New_York", { gap: "skip" }),
  cron("*/30 2 * 3 0#2", "America/New_York"),
];
for (const rule of sparse) {
  const from = [START_AT, Date.parse("2044-03-01T00:00:00Z"), Date.parse("2096-03-01T00:00:00Z")];
  const first = from.map((at) => timed(() => nextAfter(compile(anew(rule)), at)));
  const ready = compile(rule);
  const warm = Array.from({ length: 300 }, (_, k) => timed(() => nextAfter(ready, from[k % from.length]! + k))).sort(
    (a, b) => a - b,
  );
  const figures = [Math.max(...first), warm[150]!, warm[299]!].map((ms) => ms.toFixed(3));
  report(
    `sparse  ${rule.expression} ${rule.zone} ${rule.gap ?? ""}`,
    `first ${figures[0]}, median ${figures[1]}, worst ${figures[2]} ms`,
  );
}

const rounds = 1000;
for (let k = 0; k < rounds; k += 1) compile(anew(everyday[k % everyday.length]!));
const compileMs = timed(() => {
  for (let k = 0; k < rounds; k += 1) compile(anew(everyday[k % everyday.length]!));
});
report("compile, not seen before", `${((compileMs / rounds) * 1000).toFixed(1)} µs`);
const againMs = timed(() => {
  for (let k = 0; k < 100_000; k += 1) compile(everyday[k % everyday.length]!);
});
report("compile, seen before", `${(againMs / 100).toFixed(2)} µs`);
const localMs = timed(() => {
  for (let k = 0; k < 50_000; k += 1) toLocal("America/New_York", START_AT + k * 3_600_000, zones);
});
report("toLocal", `${(localMs / 50).toFixed(2)} µs`);

function cron(expression: string, zone: string, choice: Partial<Cron> = {}): Cron {
  return { kind: "cron", expression, zone, ...choice };
}

/** The same rule in a text that nobody has compiled. */
function anew(rule: Cron): Cron {
  spaces += 1;
  const [first, ...rest] = rule.expression.split(" ");
  return {
    ...rule,
    expression: [first, " ".repeat(1 + (spaces % 100)), " ".repeat(1 + (Math.floor(spaces / 100) % 80)), ...rest].join(
      " ",
    ),
  };
}

function compile(rule: Rule): CompiledRule {
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

function timed(work: () => unknown): number {
  const startAt = performance.now();
  work();
  return performance.now() - startAt;
}

function perSecond(count: number, ms: number): string {
  return `${Math.round((count / ms) * 1000).toLocaleString("en")}/s, ${((ms / count) * 1000).toFixed(2)} µs each`;
}

function report(what: string, figure: string): void {
  console.log(`${what.padEnd(72)} ${figure}`);
}

import { z } from "zod";
import { compileRule } from "../../../domain/recurrence/compile.ts";
import { nextAfter } from "../../../domain/recurrence/next.ts";
import type { CronRule } from "../../../domain/recurrence/rule.ts";
import type { ZoneSource } from "../../../domain/recurrence/zone-source.ts";
import { messageOf } from "../../../kernel/errors.ts";

/** One line of a vector file. Fields that say nothing to us, such as notes, are left alone. */

const missingOr = (otherwise: string) => ({
  error: ({ input }: { input?: unknown }) => (input === undefined ? "is missing" : otherwise),
});
const instant = z.iso
  .datetime({ offset: true, ...missingOr("is no RFC 3339 instant with an offset") })
  .transform(Date.parse);
const instants = z.array(instant, missingOr("is no list of instants"));
const text = z.string(missingOr("is no text"));
const shared = { expr: text, tz: text };

const instantVector = z.object({
  ...shared,
  from: instant,
  count: z.int(missingOr("is no whole number")).min(0).max(100_000),
  expected: instants,
  expectedShift: instants.optional(),
  expectedSkip: instants.optional(),
});
const syntaxVector = z.object({
  ...shared,
  verdict: z.enum(["accept", "reject"], { error: 'is neither "accept" nor "reject"' }),
});

export type VectorOutcome = {
  /** What the line calls itself; empty where it does not. */
  readonly id: string;
  /** Nothing where it passed; a line that cannot be read is a difference too. */
  readonly differences: readonly string[];
};

/** Compares one line with what this program computes. Never throws. */
export function checkVector(line: string, zones: ZoneSource): VectorOutcome {
  let parsed: unknown;
  try {
    parsed = JSON.parse(line);
  } catch (error) {
    return { id: "", differences: [`is not JSON (${messageOf(error)})`] };
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    return { id: "", differences: ["is no JSON object"] };
  }
  const id = "id" in parsed ? String(parsed.id) : "";
  if ("verdict" in parsed && !("expected" in parsed)) {
    const read = syntaxVector.safeParse(parsed);
    return { id, differences: read.success ? syntaxDifferences(read.data, zones) : faultsOf(read.error) };
  }
  const read = instantVector.safeParse(parsed);
  return { id, differences: read.success ? instantDifferences(read.data, zones) : faultsOf(read.error) };
}

function faultsOf(error: z.ZodError): string[] {
  return error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
}

function syntaxDifferences({ expr, tz, verdict }: z.output<typeof syntaxVector>, zones: ZoneSource): string[] {
  const compiled = compileRule(ruleOf(expr, tz), zones);
  if (compiled.ok === (verdict === "accept")) return [];
  const what = `${JSON.stringify(expr)} in ${JSON.stringify(tz)}`;
  if (compiled.ok) return [`${what}: expected reject, found accept`];
  const { field, found, message } = compiled.fault;
  return [`${what}: expected accept, found reject (${field}: ${JSON.stringify(found)}; ${message})`];
}

function instantDifferences(vector: z.output<typeof instantVector>, zones: ZoneSource): string[] {
  return [
    ...compare("expected", vector.expected, vector, {}, zones),
    ...compare("expectedShift", vector.expectedShift, vector, { gap: "shift" }, zones),
    ...compare("expectedSkip", vector.expectedSkip, vector, { gap: "skip" }, zones),
  ];
}

function compare(
  name: string,
  expected: readonly number[] | undefined,
  { expr, tz, from, count }: z.output<typeof instantVector>,
  choice: Partial<CronRule>,
  zones: ZoneSource,
): string[] {
  if (expected === undefined) return [];
  const what = `${JSON.stringify(expr)} in ${JSON.stringify(tz)}`;
  const compiled = compileRule({ ...ruleOf(expr, tz), ...choice }, zones);
  if (!compiled.ok) return [`${what}: ${name}: refused: ${compiled.fault.field}: ${compiled.fault.message}`];
  const found: number[] = [];
  for (
    let at = nextAfter(compiled.rule, from);
    at !== null && found.length < count;
    at = nextAfter(compiled.rule, at)
  ) {
    found.push(at);
  }
  const show = (at: number | undefined) => (at === undefined ? "none" : new Date(at).toISOString());
  return Array.from({ length: Math.max(expected.length, found.length) }, (_, k) =>
    expected[k] === found[k] ? "" : `${what}: ${name}[${k}]: expected ${show(expected[k])}, found ${show(found[k])}`,
  ).filter((one) => one !== "");
}

/** Six fields mean seconds. */
function ruleOf(expression: string, zone: string): CronRule {
  const seconds = expression.trim().split(/\s+/).length === 6;
  return { kind: "cron", expression, zone, ...(seconds ? { seconds } : {}) };
}

import { messageOf } from "../../../kernel/errors.ts";
import { printLine } from "../print.ts";

/** One thing that the protocol promises, tried. Throws what is not as it should be, or Skipped. */
export type Check<Stage> = { name: string; run(stage: Stage): Promise<void> };

export class Skipped extends Error {}

export type Outcome = { check: string; outcome: "pass" | "fail" | "skip"; detail: string | null };

/** Runs checks one after the other; one that fails stops no other. */
export async function runChecks<Stage>(
  checks: readonly Check<Stage>[],
  stage: Stage,
  isQuiet: boolean,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const { name, run } of checks) {
    const outcome: Outcome = { check: name, outcome: "pass", detail: null };
    try {
      await run(stage);
    } catch (error) {
      outcome.outcome = error instanceof Skipped ? "skip" : "fail";
      outcome.detail = messageOf(error);
    }
    outcomes.push(outcome);
    if (!isQuiet)
      printLine(`${WORDS[outcome.outcome]}  ${name}${outcome.detail === null ? "" : `: ${outcome.detail}`}`);
  }
  return outcomes;
}

const WORDS = { pass: "pass", fail: "FAIL", skip: "skip" } as const;

/** Throws where what was found is not what it should be, as far as `wanted` names it. */
export function expectLike(found: unknown, wanted: unknown, what: string): void {
  if (isLike(found, wanted)) return;
  throw new Error(`${what}: found ${JSON.stringify(found)?.slice(0, 300)}; expected ${JSON.stringify(wanted)}`);
}

function isLike(found: unknown, wanted: unknown): boolean {
  if (typeof wanted !== "object" || wanted === null) return Object.is(found, wanted);
  if (Array.isArray(wanted)) {
    return Array.isArray(found) && found.length === wanted.length && wanted.every((one, i) => isLike(found[i], one));
  }
  if (typeof found !== "object" || found === null) return false;
  return Object.entries(wanted).every(([name, one]) => isLike((found as Record<string, unknown>)[name], one));
}

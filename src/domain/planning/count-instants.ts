import type { Instant } from "../../kernel/clock.ts";
import type { CompiledRule } from "../recurrence/compiled.ts";
import type { NextAfter } from "./look-back.ts";

/** Where counting a range stands: `at` is the next instant to be counted, null once there is none left in it. */
export type Counting = { at: Instant | null; counted: number };

/** Goes on counting the instants up to `toAt`, at most `most` of them. */
export function countOn({ at, counted }: Counting, toAt: Instant, next: NextAfter, most: number): Counting {
  let from = at;
  let n = 0;
  while (from !== null && from <= toAt && n < most) {
    n++;
    from = next(from);
  }
  return { at: from !== null && from <= toAt ? from : null, counted: counted + n };
}

/** The number of instants of a range that begins and ends with one, where that needs no walk. */
export function countAtOnce(rule: CompiledRule, fromAt: Instant, toAt: Instant): number | undefined {
  return rule.kind === "interval" ? Math.round((toAt - fromAt) / rule.everyMs) + 1 : undefined;
}

/** Appointments that a clock change skips and that nothing stands in for: what a list of instants cannot show. */
import type { CompiledRule } from "../compiled.ts";
import { segmentAt, segmentEnd } from "../zone.ts";
import { type SkippedTimes, skippedTimes } from "./gaps.ts";

export type Omission = {
  /** When the clocks jump over the times (epoch ms). */
  readonly at: number;
  readonly skipped: SkippedTimes;
  /** `skip`: the rule asks for it; `shown`: the rule follows the clock on the wall, which never shows them. */
  readonly because: "skip" | "shown";
};

/** Omissions whose gap lies in `afterAt` < t ≤ `untilAt` (epoch ms), in order, `most` of them at most. */
export function omittedBetween(
  rule: CompiledRule,
  afterAt: number,
  untilAt: number,
  most: number,
): readonly Omission[] {
  if (rule.kind === "anyOf") {
    const all = rule.rules.flatMap((one) => omittedBetween(one, afterAt, untilAt, most));
    return all.sort((a, b) => a.at - b.at).slice(0, most);
  }
  if (rule.kind !== "cron" || (rule.timing === "fixed" && rule.gap !== "skip")) return [];
  const { pattern, zone } = rule;
  const omissions: Omission[] = [];
  let k = segmentAt(zone, afterAt / 1000);
  while (omissions.length < most && segmentEnd(zone, k) * 1000 <= untilAt) {
    k += 1;
    const skipped = skippedTimes(pattern, zone, k);
    if (skipped === undefined) continue;
    omissions.push({ at: zone.at[k]! * 1000, skipped, because: rule.timing === "shown" ? "shown" : "skip" });
  }
  return omissions;
}

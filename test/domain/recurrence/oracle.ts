/**
 * What is due, found the slow way: walk a stretch of time minute by minute, write down what the wall shows, and apply the
 * policies' definitions to what was written down. Shares with the program only the zone's offset at an instant.
 */
import { offsetAt, type Zone } from "../../../src/domain/recurrence/zone.ts";

export type Shown = {
  readonly minute: number;
  readonly hour: number;
  readonly day: number;
  readonly month: number;
  readonly weekday: number;
};
export type Policy = { readonly gap: "first" | "shift" | "skip"; readonly overlap: "first" | "last" | "both" };

const MINUTE = 60;
/** No clock change is wider, so what lies further outside the stretch cannot reach into it. */
const MARGIN = 2 * 86_400;

/** Instants in `from` < t < `to` (epoch seconds, whole minutes) at which a rule that `matches` wall minutes is due. */
export function dueMinutes(
  zone: Zone,
  from: number,
  to: number,
  matches: (shown: Shown) => boolean,
  policy: Policy | "as shown",
): number[] {
  const base = from - 2 * MARGIN;
  /** `passes[k]`: when the wall read the k-th minute after `base`. */
  const passes: number[][] = [];
  for (let t = from - MARGIN; t < to + MARGIN; t += MINUTE) {
    const k = (t + offsetAt(zone, t) - base) / MINUTE;
    passes[k] = [...(passes[k] ?? []), t];
  }
  const due = new Set<number>();
  const first = passes.findIndex((one) => one !== undefined);
  for (let k = first; k < passes.length; k += 1) {
    if (!matches(read(base + k * MINUTE))) continue;
    for (const t of instantsOf(zone, passes, k, base, policy)) if (t > from && t < to) due.add(t);
  }
  return [...due].sort((a, b) => a - b);
}

function instantsOf(
  zone: Zone,
  passes: readonly (number[] | undefined)[],
  k: number,
  base: number,
  policy: Policy | "as shown",
): number[] {
  const shown = passes[k] ?? [];
  if (policy === "as shown") return shown;
  if (shown.length > 0) {
    if (policy.overlap === "both") return shown;
    return [policy.overlap === "first" ? shown[0]! : shown.at(-1)!];
  }
  if (policy.gap === "skip") return [];
  // In a gap: the first instant that shows a later time is where the gap ends.
  let later = k;
  while (passes[later] === undefined) later += 1;
  const end = passes[later]![0]!;
  return [policy.gap === "first" ? end : base + k * MINUTE - offsetAt(zone, end - MINUTE)];
}

function read(wall: number): Shown {
  const date = new Date(wall * 1000);
  return {
    minute: date.getUTCMinutes(),
    hour: date.getUTCHours(),
    day: date.getUTCDate(),
    month: date.getUTCMonth() + 1,
    weekday: date.getUTCDay(),
  };
}

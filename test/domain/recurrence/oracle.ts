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

/** A wall minute that the rule asks for: when it was shown, and when the rule is due on its account (epoch seconds). */
export type Appointment = { readonly wall: number; readonly shown: readonly number[]; readonly due: readonly number[] };

/** Instants in `from` < t < `to` (epoch seconds, whole minutes) at which a rule that `matches` wall minutes is due. */
export function dueMinutes(
  zone: Zone,
  from: number,
  to: number,
  matches: (shown: Shown) => boolean,
  policy: Policy | "as shown",
): number[] {
  const due = appointments(zone, from, to, matches, policy).flatMap((one) => one.due);
  return [...new Set(due)].filter((t) => t > from && t < to).sort((a, b) => a - b);
}

/** Every appointment whose wall minute lies in the stretch or near it. */
export function appointments(
  zone: Zone,
  from: number,
  to: number,
  matches: (shown: Shown) => boolean,
  policy: Policy | "as shown",
): Appointment[] {
  const base = from - 2 * MARGIN;
  /** `passes[k]`: when the wall read the k-th minute after `base`. */
  const passes: number[][] = [];
  for (let t = from - MARGIN; t < to + MARGIN; t += MINUTE) {
    const k = (t + offsetAt(zone, t) - base) / MINUTE;
    passes[k] = [...(passes[k] ?? []), t];
  }
  const found: Appointment[] = [];
  const first = passes.findIndex((one) => one !== undefined);
  for (let k = first; k < passes.length; k += 1) {
    const wall = base + k * MINUTE;
    if (!matches(read(wall))) continue;
    found.push({ wall, shown: passes[k] ?? [], due: instantsOf(zone, passes, k, base, policy) });
  }
  return found;
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

/** How much work a minute brings, and how long a run of it takes. */
import type { Instant } from "../../kernel/clock.ts";
import type { ResourceClass } from "../definition.ts";
import { nextNominal, placeRun, type Timetable } from "./timetable.ts";

const MINUTE_MS = 60_000;

export function minuteOf(at: Instant): Instant {
  return Math.floor(at / MINUTE_MS) * MINUTE_MS;
}

/** Runs found in one minute before their count is called capped. */
const FOUND_AT_MOST = 10_000;

/** When the runs of all timetables are due in the minute that begins at `minuteAt`, in no order, 10,000 at most. */
export function dueInMinute(timetables: readonly Timetable[], minuteAt: Instant): Instant[] {
  const endAt = minuteAt + MINUTE_MS;
  const found: Instant[] = [];
  for (const timetable of timetables) {
    let at = firstThatMayReach(timetable, minuteAt);
    while (at !== null && at < endAt && found.length < FOUND_AT_MOST) {
      const dueAt = placeRun(timetable, at).due?.dueAt;
      if (dueAt !== undefined && dueAt >= minuteAt && dueAt < endAt) found.push(dueAt);
      at = nextNominal(timetable, at);
    }
  }
  return found;
}

/**
 * The instant from which to look: a window may bring a run of before the minute into it. A run is due before the next
 * nominal instant, so only the last one before the minute matters; it is looked for in steps that double.
 */
function firstThatMayReach(timetable: Timetable, minuteAt: Instant): Instant | null {
  const furthest = timetable.window?.ms ?? 0;
  for (
    let back = Math.min(MINUTE_MS, furthest);
    back > 0;
    back = back === furthest ? 0 : Math.min(2 * back, furthest)
  ) {
    const at = nextNominal(timetable, minuteAt - back - 1);
    if (at !== null && at < minuteAt) return at;
  }
  return nextNominal(timetable, minuteAt - 1);
}

/** The first of the minutes with the most runs; undefined for no minutes. */
export function busiest(
  dueByMinute: ReadonlyMap<Instant, readonly Instant[]>,
): { at: Instant; dueAts: readonly Instant[] } | undefined {
  let found: { at: Instant; dueAts: readonly Instant[] } | undefined;
  for (const [at, dueAts] of dueByMinute) {
    if (found === undefined || dueAts.length > found.dueAts.length) found = { at, dueAts };
  }
  return found;
}

/** What is assumed of a class of which nothing has been seen (ms). */
const ASSUMED_P95_MS: Readonly<Record<ResourceClass, number>> = {
  short: 1000,
  long: 600_000,
  memory: 300_000,
  remote: 60_000,
};
const ENOUGH_SAMPLES = 20;

export type Duration = {
  readonly p95Ms: number;
  readonly basis: "recent-runs" | "workers" | "class-default";
  readonly samples: number;
};

/** From the tenant's own recent runs where there are 20, else from what the workers have seen, else an assumption. */
export function expectedDuration(
  recentMs: readonly number[],
  workersP95Ms: number | null,
  class_: ResourceClass,
): Duration {
  const samples = recentMs.length;
  if (samples >= ENOUGH_SAMPLES) {
    const sorted = recentMs.toSorted((a, b) => a - b);
    const p95Ms = Math.ceil(sorted[Math.ceil(samples * 0.95) - 1]!);
    return { p95Ms, basis: "recent-runs", samples };
  }
  // Workers announce 0 before they have run anything.
  if (workersP95Ms !== null && workersP95Ms > 0) return { p95Ms: Math.ceil(workersP95Ms), basis: "workers", samples };
  return { p95Ms: ASSUMED_P95_MS[class_], basis: "class-default", samples };
}

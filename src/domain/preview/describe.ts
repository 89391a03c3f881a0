import type { CalendarUse } from "../calendar/definition.ts";
import type { Definition } from "../definition.ts";
import type { CompiledRule } from "../recurrence/compiled.ts";
import { describeRule } from "../recurrence/describe.ts";
import { duration, list, plural } from "../recurrence/words.ts";

export type Timing = Pick<Definition, "startAt" | "endAt" | "maxRuns"> & {
  readonly calendars?: readonly CalendarUse[] | undefined;
  readonly windowMs?: number | undefined;
};

/** When a schedule runs, in a sentence without its full stop: its rule, its calendars, its bounds. */
export function describeTiming(
  rule: CompiledRule,
  { startAt, endAt, maxRuns, windowMs, calendars = [] }: Timing,
): string {
  const named = (choice: "exclude" | "shift") =>
    calendars.filter((use) => use.onExcluded === choice).map((use) => use.name);
  const [excluding, shifting] = [named("exclude"), named("shift")];
  return [
    describeRule(rule),
    ...(windowMs === undefined ? [] : [`spread over a window of ${duration(windowMs)}`]),
    ...(excluding.length === 0 ? [] : [`not on days excluded by ${list(excluding)}`]),
    ...(shifting.length === 0 ? [] : [`moved to the next business day by ${list(shifting)}`]),
    ...(startAt === undefined ? [] : [`from ${startAt}`]),
    ...(endAt === undefined ? [] : [`until before ${endAt}`]),
    ...(maxRuns === undefined ? [] : [`at most ${plural(maxRuns, "run")}`]),
  ].join("; ");
}

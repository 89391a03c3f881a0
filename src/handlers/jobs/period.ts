import { z } from "zod";
import type { Instant } from "../../kernel/clock.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Longest period a report may cover. */
export const PERIOD_LIMIT_MS = 366 * DAY_MS;

const NAMED_PERIODS = { "last-hour": HOUR_MS, "last-day": DAY_MS, "last-7-days": 7 * DAY_MS } as const;
type NamedPeriod = keyof typeof NAMED_PERIODS;

const instant = z.iso.datetime({ offset: true });
const range = z
  .strictObject({ from: instant, to: instant })
  .refine(({ from, to }) => Date.parse(from) < Date.parse(to) && Date.parse(to) - Date.parse(from) <= PERIOD_LIMIT_MS, {
    error: "`from` lies before `to`, and at most 366 days before it",
  });

/** Which runs a report is about. */
export const periodInput = z
  .union([z.enum(Object.keys(NAMED_PERIODS) as NamedPeriod[]), range])
  .default("last-day")
  .describe("Which runs, by nominal instant; a named period ends at this run's own nominal instant");

/** [fromAt, toAt), epoch ms. */
export type Period = { fromAt: Instant; toAt: Instant };

/** A named period ends at the run's own nominal instant, so that a retry reports the same period. */
export function resolvePeriod(period: z.output<typeof periodInput>, scheduledAt: Instant): Period {
  if (typeof period === "string") return { fromAt: scheduledAt - NAMED_PERIODS[period], toAt: scheduledAt };
  return { fromAt: Date.parse(period.from), toAt: Date.parse(period.to) };
}

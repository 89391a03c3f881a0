import { z } from "zod";
import { calendarUsesSchema } from "./calendar/definition.ts";
import { effectsSchema } from "./effects/definition.ts";
import { jobSchema } from "./jobs/job.ts";
import { ruleSchema } from "./recurrence/rule.ts";

/** What a schedule is made of; one immutable copy per revision. All durations are whole milliseconds. */

const ms = (min: number, max: number) => z.int().min(min).max(max);
const DAY_MS = 86_400_000;

export const overlapSchema = z
  .discriminatedUnion("policy", [
    z.strictObject({ policy: z.literal("forbid") }),
    z.strictObject({ policy: z.literal("bufferOne") }),
    z.strictObject({ policy: z.literal("skip") }),
    z.strictObject({ policy: z.literal("cancelRunning") }),
    z.strictObject({ policy: z.literal("allow"), limit: z.int().min(2).max(1000).optional() }),
  ])
  .describe("What happens when a run is due while an earlier one of the schedule is still open");
export type Overlap = z.infer<typeof overlapSchema>;

export const misfireSchema = z
  .strictObject({
    policy: z.enum(["latest", "skip", "all"]).default("latest"),
    graceMs: ms(0, DAY_MS).default(60_000),
    maxCatchUp: z.int().min(1).max(10_000).default(100),
  })
  .describe("What happens to instants missed by more than the grace");
export type Misfire = z.infer<typeof misfireSchema>;

export const retrySchema = z
  .strictObject({
    maxAttempts: z.int().min(1).max(100).default(3),
    maxElapsedMs: ms(1000, 30 * DAY_MS).default(DAY_MS),
    baseMs: ms(1, DAY_MS).default(1000),
    capMs: ms(1, DAY_MS).default(300_000),
    nonRetryable: z
      .array(z.string().regex(/^[a-zA-Z0-9][a-zA-Z0-9._:-]{0,99}$/))
      .min(1)
      .max(50)
      .optional()
      .describe("Error codes that no retry would mend: the first failure with one of them is the last"),
  })
  .describe("Transient failures are tried again with exponential back-off and full jitter");
export type Retry = z.infer<typeof retrySchema>;

/**
 * Resource classes: separate pools, so that short work never waits behind long work. What tenants' own workers do is `remote`,
 * whatever it needs: it takes none of our slots.
 */
export const CLASSES = ["short", "long", "memory", "remote"] as const;
export const classSchema = z.enum(CLASSES);
export type ResourceClass = z.infer<typeof classSchema>;
/** Classes whose work is done by workers of ours. */
export const OWN_CLASSES = ["short", "long", "memory"] as const satisfies readonly ResourceClass[];

/** Longest attempt of ordinary work; what is longer belongs in a class of its own, with a limit that is configured. */
export const SHORT_ATTEMPT_LIMIT_MS = 15 * 60_000;
export const DEFAULT_ATTEMPT_LIMIT_MS: Readonly<Record<ResourceClass, number>> = {
  short: SHORT_ATTEMPT_LIMIT_MS,
  long: DAY_MS,
  memory: 6 * 3_600_000,
  remote: DAY_MS,
};

/** What a run needs to know of its schedule: also the definition of an ad hoc run. */
export const workSchema = z.strictObject({
  job: jobSchema,
  class: classSchema.default("short"),
  priority: z.enum(["strict", "normal", "late"]).default("normal"),
  retry: retrySchema.prefault({}),
  attemptTimeoutMs: ms(1000, DAY_MS).default(SHORT_ATTEMPT_LIMIT_MS),
  startDeadlineMs: ms(1000, 30 * DAY_MS)
    .optional()
    .describe("A run that could not start this long after its due instant is skipped"),
  effects: effectsSchema.optional(),
});
export type Work = z.infer<typeof workSchema>;

/** Work in the class it belongs to, whatever was said: what tenants' own workers do needs none of our slots. */
export function inItsClass<W extends Pick<Work, "job" | "class">>(work: W): W {
  return work.job.kind === "remote" ? { ...work, class: "remote" } : work;
}

export const definitionSchema = workSchema.extend({
  rule: ruleSchema,
  startAt: z.iso.datetime({ offset: true }).optional().describe("First instant that may run (inclusive)"),
  endAt: z.iso.datetime({ offset: true }).optional().describe("No instant from here on (exclusive)"),
  maxRuns: z.int().min(1).optional().describe("Runs in all; skips do not count"),
  runIfPast: z.boolean().default(false).describe("A `once` rule in the past runs at once instead of being refused"),
  windowMs: ms(1000, DAY_MS)
    .optional()
    .describe(
      "Spreads runs: each is due up to this long after its nominal instant, always by the schedule's own share, and before the next instant",
    ),
  overlap: overlapSchema.prefault({ policy: "forbid" }),
  pauseOnFailure: z
    .boolean()
    .default(false)
    .describe("A run that fails for good pauses the schedule, and what waits behind it waits until that is resumed"),
  misfire: misfireSchema.prefault({}),
  calendars: calendarUsesSchema.optional(),
});
export type Definition = z.infer<typeof definitionSchema>;

/** Payloads are JSON objects of at most 64 KiB. */
export const PAYLOAD_LIMIT_BYTES = 65_536;
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type Payload = { [key: string]: Json };

/**
 * What a tenant writes to say when runs are due. These schemas check shapes; `compileRule` checks meaning (a zone that
 * exists, a date that can come), because its answers can say more than a schema's.
 */
import { z } from "zod";

const MOMENT = "An RFC 3339 instant such as 2026-10-01T09:00:00Z; with `zone`, a local time such as 2026-10-01T09:00";

const zoneSchema = z.string().max(64).describe("A name of the IANA time zone database, such as America/New_York");
const momentSchema = z.string().max(64).describe(MOMENT);

const GAP_CHOICES = ["first", "shift", "skip"] as const;
const OVERLAP_CHOICES = ["first", "last", "both"] as const;

const cronRuleSchema = z
  .strictObject({
    kind: z.literal("cron"),
    expression: z
      .string()
      .max(1000)
      .describe("Five fields (minute, hour, day of month, month, day of week) or a macro"),
    zone: zoneSchema,
    seconds: z.boolean().optional().describe("Six fields, the first of them seconds"),
    gap: z
      .enum(GAP_CHOICES)
      .optional()
      .describe(
        "A fixed time that a clock change skips runs when the gap ends (first), as much later as the clocks moved (shift), or not at all (skip)",
      ),
    overlap: z
      .enum(OVERLAP_CHOICES)
      .optional()
      .describe("A fixed time that a clock change repeats runs in the first pass, in the last, or in both"),
  })
  .describe("Whenever the calendar and a clock in `zone` match the expression");

const intervalRuleSchema = z
  .strictObject({
    kind: z.literal("interval"),
    everyMs: z.int().min(1000).max(3_155_760_000_000).optional(),
    every: z
      .strictObject({ n: z.int().min(1).max(100_000_000), unit: z.enum(["seconds", "minutes", "hours", "days"]) })
      .optional(),
    anchorAt: z.union([z.int(), momentSchema]).describe("The first instant: RFC 3339, or epoch milliseconds"),
  })
  .describe("Every so much elapsed time from an anchor; clock changes do not move it. Give `everyMs` or `every`");

const onceRuleSchema = z
  .strictObject({ kind: z.literal("once"), at: momentSchema, zone: zoneSchema.optional() })
  .describe("One instant, or one local time in a zone");

const datesRuleSchema = z
  .strictObject({
    kind: z.literal("dates"),
    at: z.array(momentSchema).min(1).max(1000),
    zone: zoneSchema.optional(),
  })
  .describe("A list of instants, or of local times in a zone");

const afterCompletionRuleSchema = z
  .strictObject({ kind: z.literal("afterCompletion"), delayMs: z.int().min(0).max(3_155_760_000_000) })
  .describe("So many milliseconds after the previous run ended");

const singleRules = [
  cronRuleSchema,
  intervalRuleSchema,
  onceRuleSchema,
  datesRuleSchema,
  afterCompletionRuleSchema,
] as const;

const anyOfRuleSchema = z
  .strictObject({ kind: z.literal("anyOf"), rules: z.array(z.discriminatedUnion("kind", singleRules)).min(1).max(16) })
  .describe("Whenever any of the rules is due; one run for each distinct instant");

export const ruleSchema = z.discriminatedUnion("kind", [...singleRules, anyOfRuleSchema]).describe("When runs are due");

export type Rule = z.infer<typeof ruleSchema>;
export type CronRule = z.infer<typeof cronRuleSchema>;
export type IntervalRule = z.infer<typeof intervalRuleSchema>;
export type Gap = (typeof GAP_CHOICES)[number];
export type Overlap = (typeof OVERLAP_CHOICES)[number];

import { z } from "zod";
import { definitionSchema } from "../../domain/definition.ts";
import type { Rule } from "../../domain/recurrence/rule.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { localInstant } from "../../domain/rule-zone.ts";
import { SCHEDULE_STATUSES } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { showId } from "../../kernel/ids.ts";
import type { RevisionView, ScheduleView } from "../../store/reads/schedules.ts";
import { REVISION, SCHEDULE } from "../examples.ts";
import { payloadSchema, shownInstant } from "../input/fields.ts";
import { showInstant, showInstantOrNull } from "./instant.ts";
import { countSchema } from "./operation.ts";

/** An instant as machines and as people read it. */
export const bothInstants = z
  .strictObject({
    at: shownInstant,
    local: z
      .string()
      .describe("RFC 9557, in the rule's zone, by the pinned tz database; in UTC where that has no such zone"),
  })
  .meta({ id: "BothInstants", example: SCHEDULE.nextRun });

export const scheduleSchema = definitionSchema
  .extend({
    scheduleId: z.string(),
    revision: z.int(),
    status: z.enum(SCHEDULE_STATUSES),
    key: z.string().nullable(),
    name: z.string(),
    labels: z.record(z.string(), z.string()),
    managedBy: z.string().nullable(),
    notes: z.string().nullable(),
    payload: payloadSchema,
    nextRunAt: shownInstant.nullable().describe("Next nominal instant; null when there is none"),
    nextDueAt: shownInstant.nullable().describe("When that run may start; null while paused"),
    nextRun: bothInstants.nullable(),
    fault: z
      .strictObject({
        message: z.string(),
        retryAt: shownInstant.nullable().describe("When it is tried again; null while paused"),
      })
      .nullable()
      .describe(
        "Why the rule cannot be computed at the moment, so that there is no next run; null is the ordinary case",
      ),
    createdAt: shownInstant,
    updatedAt: shownInstant,
    source: z.literal("authority"),
  })
  .meta({ id: "Schedule", example: SCHEDULE });

/** One schedule alone also says how many of its runs wait for a person's decision. */
export const scheduleDetailSchema = scheduleSchema.extend({
  deadLetters: countSchema.describe("Open dead letters: runs that were given up and that nobody has decided about"),
});
/** Counting stops here: nobody decides about more than a few. */
export const MOST_LETTERS_COUNTED = 1_000;

export function presentSchedule(view: ScheduleView, zones: ZoneSource): z.output<typeof scheduleSchema> {
  return {
    scheduleId: showId("sch", view.id),
    revision: view.revision,
    status: view.status,
    key: view.key,
    name: view.name,
    labels: view.labels,
    managedBy: view.managedBy,
    notes: view.notes,
    ...view.definition,
    payload: view.payload,
    nextRunAt: showInstantOrNull(view.nextRunAt),
    nextDueAt: showInstantOrNull(view.nextDueAt),
    nextRun: view.nextRunAt === null ? null : presentInstant(view.nextRunAt, view.definition.rule, zones),
    fault: view.fault && { message: view.fault.message, retryAt: showInstantOrNull(view.fault.retryAt) },
    createdAt: showInstant(view.createdAt),
    updatedAt: showInstant(view.updatedAt),
    source: "authority",
  };
}

export const revisionSchema = definitionSchema
  .extend({ revision: z.int(), actor: z.string(), createdAt: shownInstant, payload: payloadSchema })
  .meta({ id: "ScheduleRevision", example: REVISION });

export function presentRevision(view: RevisionView): z.output<typeof revisionSchema> {
  return {
    revision: view.revision,
    actor: view.actor,
    createdAt: showInstant(view.createdAt),
    ...view.definition,
    payload: view.payload,
  };
}

export function presentInstant(at: Instant, rule: Rule, zones: ZoneSource): z.output<typeof bothInstants> {
  return { at: showInstant(at), local: localInstant(at, rule, zones) };
}

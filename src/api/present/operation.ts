import { z } from "zod";
import type { BackfillEstimate } from "../../authority/operations/backfill/estimate.ts";
import type { RunVerdict } from "../../domain/backfill.ts";
import { OPERATION_STATES } from "../../domain/operation.ts";
import { SKIP_REASONS } from "../../domain/states.ts";
import { showId } from "../../kernel/ids.ts";
import type { OperationView } from "../../store/reads/operations.ts";
import { BACKFILL_PLAN, OPERATION } from "../examples.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant, showInstantOrNull } from "./instant.ts";
import { scheduleNamesSchema } from "./schedule-names.ts";

export const countsSchema = z.record(z.string(), z.int());

export const operationSchema = z
  .strictObject({
    operationId: z.string(),
    kind: z.string().describe("`backfill`, `replay` or `dismiss` (of many dead letters); more kinds will come"),
    scheduleId: z.string().nullable(),
    schedule: scheduleNamesSchema,
    state: z.enum(OPERATION_STATES),
    arguments: z.record(z.string(), z.unknown()).describe("What was asked for; the kind's own fields"),
    done: z.int(),
    failed: z.int().describe("Items that cannot be done; `message` says why the last one could not"),
    total: z.int().nullable().describe("Items expected when it was asked for; null: too many to count"),
    counts: countsSchema.describe("What it found and did, by name"),
    pacePerSecond: z.int().nullable().describe("Most items a second"),
    message: z.string().nullable().describe("What it waits for, or why it failed"),
    actor: z.string(),
    reason: z.string().nullable(),
    createdAt: shownInstant,
    updatedAt: shownInstant,
    nextStepAt: shownInstant.nullable().describe("The pace, or a pause after trouble, allows no step before"),
    finishedAt: shownInstant.nullable(),
    source: z.literal("authority"),
  })
  .meta({ id: "Operation", example: OPERATION });

export function presentOperation(view: OperationView): z.output<typeof operationSchema> {
  return {
    operationId: showId("op", view.id),
    kind: view.kind,
    scheduleId: view.scheduleId === null ? null : showId("sch", view.scheduleId),
    schedule: view.schedule,
    state: view.state,
    arguments: showArguments(view.arguments),
    done: view.done,
    failed: view.failed,
    total: view.total,
    counts: { ...view.tally },
    pacePerSecond: view.pacePerSecond,
    message: view.message,
    actor: view.actor,
    reason: view.reason,
    createdAt: showInstant(view.createdAt),
    updatedAt: showInstant(view.updatedAt),
    nextStepAt: showInstantOrNull(view.nextStepAt),
    finishedAt: showInstantOrNull(view.finishedAt),
    source: "authority",
  };
}

/** Kinds keep the bounds of a period as epoch ms; people read them. */
function showArguments(given: Record<string, unknown>): Record<string, unknown> {
  const shown = { ...given };
  if (typeof shown.scheduleId === "string") shown.scheduleId = showId("sch", shown.scheduleId);
  for (const name of ["from", "to", "until"]) {
    const value = shown[name];
    if (typeof value === "number") shown[name] = showInstant(value);
  }
  return shown;
}

export const countSchema = z.strictObject({
  value: z.int(),
  capped: z.boolean().describe("There are at least so many; counting stopped"),
});

export const backfillPlanSchema = z
  .strictObject({
    revision: z.int().describe("Of the schedule; its rule names the instants"),
    instants: countSchema.describe("Nominal instants in the range"),
    runs: countSchema.describe("Those that would become runs"),
    counts: countsSchema.describe(
      "`skipped`, `skipped-range`, `unrecorded` would become runs; `existing:<state>` have one; `excluded:<reason>` stay skipped",
    ),
    firstAt: shownInstant.nullable().describe("First instant that would become a run"),
    lastAt: shownInstant.nullable().describe("Last one; of what was counted"),
    sample: z
      .array(
        z.strictObject({
          at: shownInstant,
          dueAt: shownInstant,
          was: z.enum(["skipped", "skipped-range", "unrecorded"]),
          reason: z.enum(SKIP_REASONS).nullable(),
        }),
      )
      .describe("The first few"),
    estimatedSeconds: z.int().describe("At the pace, if nothing else holds it up"),
  })
  .meta({ id: "BackfillPlan", example: BACKFILL_PLAN });

export function presentPlan(estimate: BackfillEstimate, pacePerSecond: number): z.output<typeof backfillPlanSchema> {
  const { revision, instants, runs, capped, tally, firstAt, lastAt, sample } = estimate;
  return {
    revision,
    instants: { value: instants, capped },
    runs: { value: runs, capped },
    counts: { ...tally },
    firstAt: showInstantOrNull(firstAt),
    lastAt: showInstantOrNull(lastAt),
    sample: sample.map(presentSample),
    estimatedSeconds: Math.ceil(runs / pacePerSecond),
  };
}

function presentSample({ at, dueAt, was }: RunVerdict) {
  return {
    at: showInstant(at),
    dueAt: showInstant(dueAt),
    was:
      was === undefined
        ? ("unrecorded" as const)
        : was.kind === "skip"
          ? ("skipped" as const)
          : ("skipped-range" as const),
    reason: was?.reason ?? null,
  };
}

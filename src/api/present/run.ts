import { z } from "zod";
import { LETTER_STATES } from "../../domain/dead-letters.ts";
import { CLASSES } from "../../domain/definition.ts";
import { JOB_KINDS } from "../../domain/jobs/job.ts";
import { EDGES, HELD_BY, type RunState, SKIP_REASONS, TRIGGERS } from "../../domain/states.ts";
import { showId } from "../../kernel/ids.ts";
import type { LetterView } from "../../store/reads/dead-letters.ts";
import type { EffectView } from "../../store/reads/effects.ts";
import type { AttemptView, RunListItem, RunView } from "../../store/reads/runs.ts";
import { ATTEMPT, LISTED_RUN, RUN } from "../examples.ts";
import { payloadSchema, shownInstant } from "../input/fields.ts";
import { presentRunEffect, runEffectSchema } from "./effect.ts";
import { showInstant, showInstantOrNull } from "./instant.ts";
import { scheduleNamesSchema } from "./schedule-names.ts";

export const RUN_STATES = Object.keys(EDGES) as [RunState, ...RunState[]];
const errorSchema = z.strictObject({ code: z.string(), message: z.string() });

const listed = z.strictObject({
  runId: z.string(),
  scheduleId: z.string().nullable().describe("null: an ad hoc run"),
  schedule: scheduleNamesSchema,
  state: z.enum(RUN_STATES),
  class: z.enum(CLASSES),
  trigger: z.enum(TRIGGERS),
  job: z
    .object({ kind: z.enum(JOB_KINDS) })
    .loose()
    .nullable(),
  revision: z.int().nullable(),
  attempt: z.int().describe("Number of the latest attempt; 0 before the first"),
  scheduledAt: shownInstant.describe("Nominal instant"),
  dueAt: shownInstant,
  admittedAt: shownInstant,
  startedAt: shownInstant.nullable(),
  finishedAt: shownInstant.nullable(),
  skipReason: z.enum(SKIP_REASONS).nullable(),
  heldBy: z.enum(HELD_BY).nullable().describe("Why it could not start at its due instant, while it is open"),
  cancellationRequested: z.boolean(),
  error: errorSchema.nullable(),
  result: z
    .strictObject({ sha256: z.string(), size: z.int(), mediaType: z.string().nullable() })
    .nullable()
    .describe("What `…/result` leads to"),
  worker: z.string().nullable().describe("Who runs it now"),
  leaseUntil: shownInstant.nullable(),
  callbackDueAt: shownInstant
    .nullable()
    .describe(
      "The running attempt has no worker: it was detached, and whoever does the work must say by then how it ended",
    ),
});
export const runListItemSchema = listed.meta({ id: "RunListItem", example: LISTED_RUN });
const runLetterSchema = z
  .strictObject({
    state: z.enum(LETTER_STATES),
    reason: z.string(),
    fingerprint: z.string(),
    failedAt: shownInstant,
    replays: z.int(),
  })
  .nullable()
  .describe("Where the run was given up: `GET /v1/dead-letters/:runId` shows all of it");
export const runSchema = listed
  .extend({
    payload: payloadSchema,
    effects: z
      .array(runEffectSchema)
      .describe("What its success brings about outside: an email may be pending while the report is ready"),
    deadLetter: runLetterSchema,
    source: z.literal("authority"),
  })
  .meta({ id: "Run", example: RUN });

export function presentListedRun(view: RunListItem): z.output<typeof listed> {
  return {
    runId: showId("run", view.id),
    scheduleId: view.scheduleId === null ? null : showId("sch", view.scheduleId),
    schedule: view.schedule,
    state: view.state,
    class: view.class,
    trigger: view.trigger,
    job: view.job,
    revision: view.revision,
    attempt: view.attempt,
    scheduledAt: showInstant(view.scheduledAt),
    dueAt: showInstant(view.dueAt),
    admittedAt: showInstant(view.admittedAt),
    startedAt: showInstantOrNull(view.startedAt),
    finishedAt: showInstantOrNull(view.finishedAt),
    skipReason: view.skipReason,
    heldBy: view.heldBy,
    cancellationRequested: view.cancelRequestedAt !== null,
    error: view.error,
    result: view.result && { sha256: view.result.sha256, size: view.result.size, mediaType: view.result.mediaType },
    worker: view.worker,
    leaseUntil: showInstantOrNull(view.leaseUntil),
    callbackDueAt: view.worker === null ? showInstantOrNull(view.leaseUntil) : null,
  };
}

function presentLetterOfRun(letter: LetterView | undefined): z.output<typeof runLetterSchema> {
  if (letter === undefined) return null;
  const { state, reason, fingerprint, failedAt, replays } = letter;
  return { state, reason, fingerprint, failedAt: showInstant(failedAt), replays };
}

export function presentRun(
  view: RunView,
  effects: readonly EffectView[],
  letter: LetterView | undefined,
): z.output<typeof runSchema> {
  return {
    ...presentListedRun(view),
    payload: view.payload,
    effects: effects.map(presentRunEffect),
    deadLetter: presentLetterOfRun(letter),
    source: "authority",
  };
}

export const attemptSchema = z
  .strictObject({
    attempt: z.int(),
    worker: z.string().describe("Who claimed it"),
    startedAt: shownInstant,
    endedAt: shownInstant.nullable(),
    outcome: z.enum(["running", "succeeded", "failed", "canceled", "expired", "released"]),
    error: errorSchema.nullable(),
    detachedAt: shownInstant.nullable().describe("Since when its work has gone on without that worker"),
    adoptedBy: z.string().nullable().describe("The worker that took it over since"),
    progress: z.unknown().describe("How far it is, as its job last said it with a heartbeat; null: it has not"),
    logBytes: z
      .int()
      .nullable()
      .describe("Length of its log so far: `GET /v1/runs/:id/logs`; null: it has said nothing"),
  })
  .meta({ id: "Attempt", example: ATTEMPT });

export function presentAttempt(view: AttemptView): z.output<typeof attemptSchema> {
  return {
    attempt: view.n,
    worker: view.worker,
    startedAt: showInstant(view.startedAt),
    endedAt: showInstantOrNull(view.endedAt),
    outcome: view.outcome as z.output<typeof attemptSchema>["outcome"],
    error: view.error,
    detachedAt: showInstantOrNull(view.detachedAt),
    adoptedBy: view.adoptedBy,
    progress: view.progress,
    logBytes: view.logBytes,
  };
}

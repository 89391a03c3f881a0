import { z } from "zod";
import type { LettersEstimate } from "../../authority/operations/dead-letters/estimate.ts";
import { LETTER_STATES, RESOLUTIONS } from "../../domain/dead-letters.ts";
import { showId } from "../../kernel/ids.ts";
import type { LetterGroup, LetterView, ResolutionView } from "../../store/reads/dead-letters.ts";
import type { RunView } from "../../store/reads/runs.ts";
import type { LabelOf } from "../actors.ts";
import { LETTER_GROUP, LETTER_HISTORY, LETTERS_PLAN, LISTED_LETTER } from "../examples/dead-letters.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant, showInstantOrNull } from "./instant.ts";
import { countSchema, countsSchema } from "./operation.ts";
import { attemptSchema, presentAttempt, presentListedRun, runListItemSchema } from "./run.ts";

const jobShown = runListItemSchema.shape.job.describe("null: its history was removed");
const errorSchema = z.strictObject({ code: z.string(), message: z.string() });

export const letterSchema = z
  .strictObject({
    runId: z.string(),
    scheduleId: z.string().nullable().describe("null: an ad hoc run"),
    scheduledAt: shownInstant,
    class: z.string(),
    state: z.enum(LETTER_STATES).describe("`open` until a person has decided about it"),
    reason: z.string().describe("Why the run was given up: `permanent`, `attempts-exhausted`, `crash-loop` and so on"),
    fingerprint: z.string().describe("The same for failures of one kind: code and message without what varies"),
    attempts: z.int().describe("Attempts the run had had by then, over all replays"),
    error: errorSchema.nullable(),
    failedAt: shownInstant.describe("When the run was given up, the last time"),
    resolvedAt: shownInstant.nullable(),
    resolvedBy: z.string().nullable(),
    replays: z.int().describe("How often the run was replayed so far"),
    job: jobShown,
  })
  .meta({ id: "DeadLetter", example: LISTED_LETTER });

export function presentLetter(view: LetterView): z.output<typeof letterSchema> {
  return {
    runId: showId("run", view.runId),
    scheduleId: view.scheduleId === null ? null : showId("sch", view.scheduleId),
    scheduledAt: showInstant(view.scheduledAt),
    class: view.class,
    state: view.state,
    reason: view.reason,
    fingerprint: view.fingerprint,
    attempts: view.attempts,
    error: view.error,
    failedAt: showInstant(view.failedAt),
    resolvedAt: showInstantOrNull(view.resolvedAt),
    resolvedBy: view.resolvedBy,
    replays: view.replays,
    job: view.job,
  };
}

/** Beside an actor. */
const actorLabel = z.string().nullable().describe("What that API key is called; null: it is none of the tenant's");

const decisionSchema = z
  .strictObject({
    resolution: z.enum(RESOLUTIONS),
    resolvedAt: shownInstant,
    resolvedBy: z.string(),
    resolvedByLabel: actorLabel,
    reason: z.string().nullable().describe("Why, as whoever decided put it"),
    operationId: z.string().nullable().describe("It was decided about many at once"),
    failedAt: shownInstant.describe("The failure it was about"),
    failure: z.string(),
    attempts: z.int(),
    error: errorSchema.nullable(),
  })
  .meta({ id: "DeadLetterDecision", example: LETTER_HISTORY[0] });

/** Everything a person needs to decide. */
export const letterDetailSchema = z.strictObject({
  letter: letterSchema,
  run: runListItemSchema.nullable().describe("The run as it stands; null: its history was removed"),
  payload: z
    .discriminatedUnion("kind", [
      z.strictObject({ kind: z.literal("revision"), scheduleId: z.string(), revision: z.int() }),
      z.strictObject({ kind: z.literal("own"), runId: z.string() }),
    ])
    .nullable()
    .describe("Where what the run was given stands: in a revision of its schedule, or in the run itself"),
  attempts: z.array(attemptSchema),
  history: z.array(decisionSchema).describe("What was decided so far, the latest first"),
  source: z.literal("authority"),
});

type Detail = {
  letter: LetterView;
  run: RunView | undefined;
  attempts: readonly Parameters<typeof presentAttempt>[0][];
  history: readonly ResolutionView[];
  hasOwnPayload: boolean;
  labelOf: LabelOf;
};

export function presentDetail({
  letter,
  run,
  attempts,
  history,
  hasOwnPayload,
  labelOf,
}: Detail): z.output<typeof letterDetailSchema> {
  return {
    letter: presentLetter(letter),
    run: run === undefined ? null : presentListedRun(run),
    payload: run === undefined ? null : payloadOf(run, hasOwnPayload),
    attempts: attempts.map(presentAttempt),
    history: history.map((one) => presentDecision(one, labelOf)),
    source: "authority",
  };
}

function payloadOf({ id, scheduleId, revision }: RunView, hasOwnPayload: boolean) {
  if (hasOwnPayload || scheduleId === null || revision === null)
    return { kind: "own" as const, runId: showId("run", id) };
  return { kind: "revision" as const, scheduleId: showId("sch", scheduleId), revision };
}

function presentDecision(view: ResolutionView, labelOf: LabelOf): z.output<typeof decisionSchema> {
  const { n: _n, ...rest } = view;
  return {
    ...rest,
    resolvedByLabel: labelOf(view.resolvedBy),
    resolvedAt: showInstant(view.resolvedAt),
    operationId: view.operationId === null ? null : showId("op", view.operationId),
    failedAt: showInstant(view.failedAt),
  };
}

export const letterGroupSchema = z
  .strictObject({
    fingerprint: z.string(),
    count: countSchema,
    schedules: z.int(),
    reason: z.string().describe("Of the latest of them, as `error`"),
    error: errorSchema.nullable(),
    firstAt: shownInstant,
    lastAt: shownInstant,
    sampleRunId: z.string(),
    job: jobShown.describe("Of the sample"),
  })
  .meta({ id: "DeadLetterGroup", example: LETTER_GROUP });

export function presentGroup(group: LetterGroup, capped: boolean): z.output<typeof letterGroupSchema> {
  return {
    fingerprint: group.fingerprint,
    count: { value: group.count, capped },
    schedules: group.schedules,
    reason: group.reason,
    error: group.error,
    firstAt: showInstant(group.firstAt),
    lastAt: showInstant(group.lastAt),
    sampleRunId: showId("run", group.runId),
    job: group.job,
  };
}

export const lettersPlanSchema = z
  .strictObject({
    letters: countSchema.describe("Open dead letters that the filter means"),
    counts: countsSchema.describe(
      "What would become of them: `replayed` or `dismissed`; `schedule-deleted` and `history-removed` cannot be replayed",
    ),
    sample: z.array(letterSchema).describe("The oldest few"),
    estimatedSeconds: z.int().describe("At the pace, if nothing else holds it up"),
  })
  .meta({ id: "DeadLettersPlan", example: LETTERS_PLAN });

export function presentLettersPlan(
  { letters, capped, tally, sample }: LettersEstimate,
  pacePerSecond: number | null,
): z.output<typeof lettersPlanSchema> {
  return {
    letters: { value: letters, capped },
    counts: { ...tally },
    sample: sample.map(presentLetter),
    estimatedSeconds: pacePerSecond === null ? 0 : Math.ceil((tally.replayed ?? 0) / pacePerSecond),
  };
}

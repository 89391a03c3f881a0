import { z } from "zod";
import { effectSchema } from "../../domain/effects/definition.ts";
import { EFFECT_KINDS, EFFECT_STATES, RESOLUTIONS, SEND_OUTCOMES } from "../../domain/effects/states.ts";
import { showId } from "../../kernel/ids.ts";
import type { EffectView, SendAttemptView } from "../../store/reads/effects.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant, showInstantOrNull } from "./instant.ts";

const brief = z.strictObject({
  effectId: z.string(),
  name: z.string(),
  kind: z.enum(EFFECT_KINDS),
  state: z.enum(EFFECT_STATES),
  attempts: z.int(),
  externalId: z.string().nullable().describe("What the other side calls it, or answered"),
  message: z.string().nullable().describe("What the last attempt came to, where there is something to say"),
  resolution: z.enum(RESOLUTIONS).nullable().describe("What was decided where it was `resolved`"),
  nextAttemptAt: shownInstant.nullable(),
  settledAt: shownInstant.nullable(),
});

const EMAIL = {
  name: "email",
  kind: "email",
  to: ["sales@example.com"],
  cc: [],
  subject: "Sales report of {{run.scheduledAt}}",
  text: "The report is ready: {{result.url}}\n",
  result: "link",
  onUncertain: "hold",
  retry: { maxAttempts: 20, maxElapsedMs: 86_400_000, baseMs: 1000, capMs: 3_600_000 },
} as const;

const RUN_EFFECT = {
  effectId: "eff_01kct0v2mz8h3bmq5d0v5x2c9v",
  name: "email",
  kind: "email",
  state: "pending",
  attempts: 1,
  externalId: null,
  message: "Message failed: 451 4.3.2 Please try again later",
  resolution: null,
  nextAttemptAt: "2026-10-01T13:00:04Z",
  settledAt: null,
} as const;

const EFFECT = {
  ...RUN_EFFECT,
  actionId: "email-run_01kct0v2mz8h3bmq5d0v5x2c9s",
  runId: "run_01kct0v2mz8h3bmq5d0v5x2c9s",
  scheduleId: "sch_01kct0v2mz8h3bmq5d0v5x2c9r",
  effect: EMAIL,
  resolvedBy: null,
  createdAt: "2026-10-01T13:00:01.5Z",
  firstSentAt: "2026-10-01T13:00:01.6Z",
} as const;

/** An effect beside its run. */
export const runEffectSchema = brief.meta({ id: "RunEffect", example: RUN_EFFECT });

const listed = brief.extend({
  actionId: z
    .string()
    .describe("The same for ever: a webhook's Idempotency-Key, and what an email's Message-ID begins with"),
  runId: z.string(),
  scheduleId: z.string().nullable(),
  effect: effectSchema.describe("What was declared when the run succeeded"),
  resolvedBy: z.string().nullable().describe("null: the effect's own `onUncertain`"),
  createdAt: shownInstant,
  firstSentAt: shownInstant.nullable(),
});
export const effectListItemSchema = listed.meta({ id: "Effect", example: EFFECT });

const attemptSchema = z.strictObject({
  attempt: z.int(),
  sender: z.string(),
  startedAt: shownInstant,
  endedAt: shownInstant.nullable(),
  outcome: z.enum(["sending", ...SEND_OUTCOMES]),
  externalId: z.string().nullable(),
  message: z.string().nullable(),
});

export const effectDetailSchema = listed
  .extend({ tries: z.array(attemptSchema), source: z.literal("authority") })
  .meta({
    id: "EffectDetail",
    example: {
      ...EFFECT,
      tries: [
        {
          attempt: 1,
          sender: "effects-1",
          startedAt: "2026-10-01T13:00:01.6Z",
          endedAt: "2026-10-01T13:00:02Z",
          outcome: "refused",
          externalId: null,
          message: RUN_EFFECT.message,
        },
      ],
      source: "authority",
    },
  });

export function presentRunEffect(view: EffectView): z.output<typeof brief> {
  return {
    effectId: showId("eff", view.id),
    name: view.name,
    kind: view.kind,
    state: view.state,
    attempts: view.attempts,
    externalId: view.externalId,
    message: view.message,
    resolution: view.resolution,
    nextAttemptAt: showInstantOrNull(view.nextAttemptAt),
    settledAt: showInstantOrNull(view.settledAt),
  };
}

export function presentEffect(view: EffectView): z.output<typeof listed> {
  return {
    ...presentRunEffect(view),
    actionId: view.actionId,
    runId: showId("run", view.runId),
    scheduleId: view.scheduleId === null ? null : showId("sch", view.scheduleId),
    effect: view.effect,
    resolvedBy: view.resolvedBy,
    createdAt: showInstant(view.createdAt),
    firstSentAt: showInstantOrNull(view.firstSentAt),
  };
}

export function presentEffectDetail(
  view: EffectView,
  attempts: readonly SendAttemptView[],
): z.output<typeof effectDetailSchema> {
  return {
    ...presentEffect(view),
    tries: attempts.map((one) => ({
      attempt: one.n,
      sender: one.sender,
      startedAt: showInstant(one.startedAt),
      endedAt: showInstantOrNull(one.endedAt),
      outcome: one.outcome ?? "sending",
      externalId: one.externalId,
      message: one.message,
    })),
    source: "authority",
  };
}

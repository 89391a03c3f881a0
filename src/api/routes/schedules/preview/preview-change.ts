import { z } from "zod";
import type { Definition } from "../../../../domain/definition.ts";
import { previewOf } from "../../../../domain/preview/answer.ts";
import { changedFields } from "../../../../domain/preview/field-diff.ts";
import { compareNext } from "../../../../domain/preview/instant-diff.ts";
import { redactSealed } from "../../../../domain/secrets/forms.ts";
import { READERS } from "../../../context.ts";
import { PREVIEW_CHANGE_BODY } from "../../../examples.ts";
import { checkJobAllowed } from "../../../identity/tenant-bounds.ts";
import { checkTargets } from "../../../input/check-targets.ts";
import { checkBounds, checkWork } from "../../../input/check-work.ts";
import { readEffectSecrets, withEffects } from "../../../input/effect-secrets.ts";
import { scheduleParams, shownInstant } from "../../../input/fields.ts";
import { noFields } from "../../../input/no-fields.ts";
import { readSecrets } from "../../../input/secrets.ts";
import { fieldChanges, presentFields } from "../../../present/change.ts";
import { showInstant } from "../../../present/instant.ts";
import { bothInstants, presentInstant } from "../../../present/schedule.ts";
import { getSchedule } from "../../../resolve.ts";
import { defineRoute } from "../../../route.ts";
import { patched, patchFields } from "../patched.ts";
import { presentPreview, previewSchema } from "./answer.ts";
import { quoteFeasibility } from "./feasibility.ts";
import { previewQuestion } from "./preview-new.ts";
import { findTimetable, getTimetable } from "./timetable.ts";

const diffSchema = z.strictObject({
  against: z.int().describe("The revision it is compared with: the current one"),
  ...fieldChanges,
  stay: z
    .array(
      bothInstants.extend({
        movedFrom: shownInstant.optional().describe("When it was due, where that changes"),
        movedTo: shownInstant.optional().describe("When it would be due"),
      }),
    )
    .describe("Nominal instants, among the next ones of both, that the schedule keeps"),
  vanish: z.array(bothInstants).describe("Of its next instants, those it would lose"),
  appear: z.array(bothInstants).describe("Of the next instants after the change, those that are new"),
});

export const changePreviewSchema = previewSchema.extend({ diff: diffSchema });

export const previewChangeRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/{schedule}/preview",
  tag: "schedules",
  summary: "Say what a change of a schedule would do, before it is made",
  description:
    "The body is that of a PATCH, without a revision; `{}` previews the schedule as it is. Nothing is changed.",
  roles: READERS,
  params: scheduleParams,
  query: noFields,
  body: patchFields.extend(previewQuestion),
  example: PREVIEW_CHANGE_BODY,
  answer: {
    kind: "ok",
    description: "The next instants after the change, and how they differ from those of the current revision",
    schema: changePreviewSchema,
  },
  onlyReads: true,
  problems: [
    "not-found",
    "invalid-rule",
    "unknown-calendar",
    "unknown-job",
    "job-not-allowed",
    "payload-too-large",
    "secrets-unavailable",
  ],
  async handle({ params, body, sentBody }, context, caller) {
    const current = await getSchedule(context, caller, params.schedule);
    const { changed, definition } = patched(current, body, sentBody);
    const given = await readSecrets(context, caller.tenantId, definition.job, {
      sent: changed.payload,
      base: current.payload,
    });
    const effects = readEffectSecrets(context, caller.tenantId, definition.effects, current.definition.effects);
    checkBounds(definition, current.definition);
    checkWork(context, definition, given, current.definition);
    checkTargets(context, caller, definition, current.definition);
    checkJobAllowed(caller, definition.job);
    const question = { fromAt: body.from ?? context.clock.now(), count: body.count };
    const after = await getTimetable(context, caller, definition, question.fromAt, current.id);
    const preview = previewOf(definition, after, context.zones, question);
    const [feasibility, before] = await Promise.all([
      quoteFeasibility(context, {
        tenantId: caller.tenantId,
        class: definition.class,
        dueAts: preview.runs.map((run) => run.dueAt),
        exceptId: current.id,
      }),
      findTimetable(context, caller, current.definition, question.fromAt, current.id),
    ]);
    const { name, labels, notes, managedBy } = current;
    const described = { name, labels, notes, managedBy };
    const fields = changedFields(
      { ...described, ...redacted(current.definition), payload: redactSealed(current.payload) },
      { ...described, ...pickDescribed(changed), ...withEffects(definition, effects.shown()), payload: given.shown() },
    );
    const instants = compareNext(before, after, question.fromAt, question.count);
    const oldShown = (at: number) => presentInstant(at, current.definition.rule, context.zones);
    const newShown = (at: number) => presentInstant(at, definition.rule, context.zones);
    return {
      kind: "ok",
      body: {
        ...presentPreview(preview, feasibility, context.zones.version),
        diff: {
          against: current.revision,
          ...presentFields(fields),
          stay: instants.stay.map(({ at, movedFrom, movedTo }) => ({
            ...newShown(at),
            ...(movedFrom === undefined ? {} : { movedFrom: showInstant(movedFrom) }),
            ...(movedTo === undefined ? {} : { movedTo: showInstant(movedTo) }),
          })),
          vanish: instants.vanish.map(oldShown),
          appear: instants.appear.map(newShown),
        },
      },
    };
  },
});

function pickDescribed(changed: object): object {
  const named = ["name", "labels", "notes", "managedBy"];
  return Object.fromEntries(Object.entries(changed).filter(([field]) => named.includes(field)));
}

const redacted = (definition: Definition): Definition =>
  withEffects(definition, definition.effects && (redactSealed(definition.effects as never) as never));

import type { Definition } from "../../../domain/definition.ts";
import { WRITERS } from "../../context.ts";
import { PATCH_BODY } from "../../examples.ts";
import { scheduleFields, scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import {
  expectedRevisionSchema,
  ifMatchHeaders,
  readExpectedRevision,
  revise,
  revisedAnswer,
  reviseProblems,
} from "./revise.ts";
import { definitionOf } from "./split.ts";

const { startAt, endAt, maxRuns, startDeadlineMs, notes, managedBy } = scheduleFields.shape;
const patchBody = scheduleFields.omit({ key: true }).partial().extend({
  startAt: startAt.nullable(),
  endAt: endAt.nullable(),
  maxRuns: maxRuns.nullable(),
  startDeadlineMs: startDeadlineMs.nullable(),
  notes: notes.nullable(),
  managedBy: managedBy.nullable(),
  expectedRevision: expectedRevisionSchema,
});

export const patchScheduleRoute = defineRoute({
  method: "patch",
  path: "/v1/schedules/{schedule}",
  tag: "schedules",
  summary: "Change some fields of a schedule",
  description: "A field that is sent replaces that whole field; null takes an optional one away.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  headers: ifMatchHeaders,
  body: patchBody,
  example: PATCH_BODY,
  answer: revisedAnswer,
  problems: reviseProblems,
  async handle(call, context, caller) {
    const expectedRevision = readExpectedRevision(call.header("if-match"), call.body.expectedRevision);
    const current = await getSchedule(context, caller, call.params.schedule);
    // Defaults belong to creation: only what was really sent is a change.
    const sent = new Set(Object.keys(call.sentBody as object));
    const changed = Object.fromEntries(
      Object.entries(call.body).filter(([field]) => sent.has(field)),
    ) as typeof call.body;
    const definition = withoutNulls({ ...current.definition, ...definitionOf(changed as Definition) });
    return revise(context, caller, {
      scheduleId: current.id,
      ref: call.params.schedule,
      expectedRevision,
      change: {
        ...(changed.name === undefined ? {} : { name: changed.name }),
        ...(changed.labels === undefined ? {} : { labels: changed.labels }),
        ...(changed.notes === undefined ? {} : { notes: changed.notes }),
        ...(changed.managedBy === undefined ? {} : { managedBy: changed.managedBy }),
        definition,
        payload: changed.payload ?? current.payload,
      },
    });
  },
});

function withoutNulls(definition: Definition): Definition {
  return Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null)) as Definition;
}

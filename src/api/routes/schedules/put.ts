import { inItsClass } from "../../../domain/definition.ts";
import { WRITERS } from "../../context.ts";
import { REPLACEMENT_BODY } from "../../examples.ts";
import { scheduleFields, scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { fieldProblem } from "../../problems/problem.ts";
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

export const putScheduleRoute = defineRoute({
  method: "put",
  path: "/v1/schedules/{schedule}",
  tag: "schedules",
  summary: "Replace a schedule's definition",
  description:
    "What is due already is settled under the old revision first. Fields left out go back to their defaults.",
  roles: WRITERS,
  params: scheduleParams,
  query: noFields,
  headers: ifMatchHeaders,
  body: scheduleFields.extend({ expectedRevision: expectedRevisionSchema }),
  example: REPLACEMENT_BODY,
  answer: revisedAnswer,
  problems: reviseProblems,
  async handle(call, context, caller) {
    const { name, key, labels, managedBy, notes, payload } = call.body;
    const expectedRevision = readExpectedRevision(call.header("if-match"), call.body.expectedRevision);
    const current = await getSchedule(context, caller, call.params.schedule);
    if (key !== undefined && key !== current.key) {
      throw fieldProblem({
        field: "key",
        message: "cannot be changed",
        found: JSON.stringify(key),
        allowed: JSON.stringify(current.key),
      });
    }
    return revise(context, caller, {
      current,
      ref: call.params.schedule,
      expectedRevision,
      change: {
        name,
        labels,
        managedBy: managedBy ?? null,
        notes: notes ?? null,
        definition: inItsClass(definitionOf(call.body)),
        payload,
      },
    });
  },
});

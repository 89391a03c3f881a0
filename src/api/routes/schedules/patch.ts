import { WRITERS } from "../../context.ts";
import { PATCH_BODY } from "../../examples.ts";
import { scheduleParams } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { getSchedule } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { patched, patchFields } from "./patched.ts";
import {
  expectedRevisionSchema,
  ifMatchHeaders,
  readExpectedRevision,
  revise,
  revisedAnswer,
  reviseProblems,
} from "./revise.ts";

const patchBody = patchFields.extend({ expectedRevision: expectedRevisionSchema });

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
    const { changed, definition } = patched(current, call.body, call.sentBody);
    return revise(context, caller, {
      current,
      ref: call.params.schedule,
      expectedRevision,
      change: {
        ...(changed.name === undefined ? {} : { name: changed.name }),
        ...(changed.labels === undefined ? {} : { labels: changed.labels }),
        ...(changed.notes === undefined ? {} : { notes: changed.notes }),
        ...(changed.managedBy === undefined ? {} : { managedBy: changed.managedBy }),
        definition,
        payload: changed.payload,
      },
    });
  },
});

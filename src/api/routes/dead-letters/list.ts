import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { ofScheduleField } from "./filters.ts";
import { letterPageAnswer, pageFields, pageOfLetters } from "./page.ts";

export const listDeadLettersRoute = defineRoute({
  method: "get",
  path: "/v1/dead-letters",
  tag: "dead-letters",
  summary: "List runs that were given up, latest failure first",
  description: "Without `state`, those that nobody has decided about.",
  roles: READERS,
  params: noFields,
  query: pageFields.extend({ scheduleId: ofScheduleField }),
  answer: letterPageAnswer,
  problems: ["invalid-cursor", "not-found", "busy"],
  handle({ query: { scheduleId, ...query } }, context, caller) {
    return pageOfLetters(context, caller, query, scheduleId);
  },
});

import { z } from "zod";
import { definitionSchema } from "../../../../domain/definition.ts";
import { previewOf } from "../../../../domain/preview/answer.ts";
import { READERS } from "../../../context.ts";
import { PREVIEW_BODY } from "../../../examples.ts";
import { checkBounds } from "../../../input/check-work.ts";
import { instantSchema } from "../../../input/fields.ts";
import { noFields } from "../../../input/no-fields.ts";
import { defineRoute } from "../../../route.ts";
import { presentPreview, previewSchema } from "./answer.ts";
import { quoteFeasibility } from "./feasibility.ts";
import { getTimetable } from "./timetable.ts";

const timing = definitionSchema.pick({
  rule: true,
  startAt: true,
  endAt: true,
  maxRuns: true,
  calendars: true,
  windowMs: true,
  class: true,
});

/** How far ahead to look; of both previews. */
export const previewQuestion = {
  count: z.int().min(1).max(100).default(5).describe("How many instants"),
  from: instantSchema.optional().describe("Instants later than this; default: now"),
};

export const previewScheduleRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/preview",
  tag: "schedules",
  summary: "Say when a rule would run, before anything is created",
  roles: READERS,
  params: noFields,
  query: noFields,
  body: timing.extend(previewQuestion),
  example: PREVIEW_BODY,
  answer: { kind: "ok", description: "The next instants and the rule in words", schema: previewSchema },
  onlyReads: true,
  problems: ["invalid-rule", "unknown-calendar"],
  async handle({ body }, context, caller) {
    checkBounds(body);
    const fromAt = body.from ?? context.clock.now();
    const timetable = await getTimetable(context, caller, body, fromAt);
    const preview = previewOf(body, timetable, context.zones, {
      fromAt,
      count: Math.min(body.count, body.maxRuns ?? body.count),
    });
    const feasibility = await quoteFeasibility(context, {
      tenantId: caller.tenantId,
      class: body.class,
      dueAts: preview.runs.map((run) => run.dueAt),
    });
    return { kind: "ok", body: presentPreview(preview, feasibility, context.zones.version) };
  },
});

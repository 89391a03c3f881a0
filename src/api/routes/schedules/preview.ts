import { z } from "zod";
import { definitionSchema } from "../../../domain/definition.ts";
import { compileRule } from "../../../domain/recurrence/compile.ts";
import { describeRule } from "../../../domain/recurrence/describe.ts";
import { nextAfter } from "../../../domain/recurrence/next.ts";
import { ruleWarnings } from "../../../domain/recurrence/warnings.ts";
import { READERS } from "../../context.ts";
import { PREVIEW_BODY } from "../../examples.ts";
import { checkWindow, ruleProblem } from "../../input/check-work.ts";
import { instantSchema, shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentInstant } from "../../present/schedule.ts";
import { defineRoute } from "../../route.ts";

const { rule, startAt, endAt } = definitionSchema.shape;

export const previewScheduleRoute = defineRoute({
  method: "post",
  path: "/v1/schedules/preview",
  tag: "schedules",
  summary: "Say when a rule would run, before anything is created",
  roles: READERS,
  params: noFields,
  query: noFields,
  body: z.strictObject({
    rule,
    startAt,
    endAt,
    count: z.int().min(1).max(100).default(5).describe("How many instants"),
    from: instantSchema.optional().describe("Instants later than this; default: now"),
  }),
  example: PREVIEW_BODY,
  answer: {
    kind: "ok",
    description: "The next instants and the rule in words",
    schema: z.strictObject({
      description: z.string(),
      warnings: z.array(z.string()),
      instants: z.array(
        z.strictObject({
          at: shownInstant,
          local: z.string(),
          offset: z.string().describe("From UTC, such as -04:00"),
          label: z
            .string()
            .optional()
            .describe("What touched this instant, such as a clock change since the one before"),
        }),
      ),
      tzVersion: z.string().describe("The pinned tz database these were computed by"),
    }),
  },
  problems: ["invalid-rule"],
  handle({ body }, context) {
    checkWindow({ ...(body.startAt && { startAt: body.startAt }), ...(body.endAt && { endAt: body.endAt }) });
    const compiled = compileRule(body.rule, context.zones);
    if (!compiled.ok) throw ruleProblem(compiled.fault, body.rule, context.zones);
    const end = body.endAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(body.endAt);
    // startAt is inclusive, nextAfter is strict.
    let at: number | null = Math.max(
      body.from ?? context.clock.now(),
      body.startAt === undefined ? 0 : Date.parse(body.startAt) - 1,
    );
    const instants: { at: string; local: string; offset: string; label?: string }[] = [];
    while (instants.length < body.count) {
      at = nextAfter(compiled.rule, at);
      if (at === null || at >= end) break;
      const both = presentInstant(at, body.rule, context.zones);
      const offset = /([+-]\d\d:\d\d(?::\d\d)?|Z)\[/.exec(both.local)?.[1] ?? "+00:00";
      const before = instants.at(-1)?.offset;
      instants.push({
        ...both,
        offset,
        ...(before !== undefined && before !== offset ? { label: `clocks changed: ${before} → ${offset}` } : {}),
      });
    }
    return {
      kind: "ok",
      body: {
        description: describeRule(compiled.rule),
        warnings: ruleWarnings(compiled.rule),
        instants,
        tzVersion: context.zones.version,
      },
    };
  },
});

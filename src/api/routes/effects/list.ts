import { z } from "zod";
import { EFFECT_KINDS, EFFECT_STATES } from "../../../domain/effects/states.ts";
import { listEffects } from "../../../store/reads/effects.ts";
import { READERS } from "../../context.ts";
import { afterSchema, limitSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { effectListItemSchema, presentEffect } from "../../present/effect.ts";
import { pageAnswer, replyWithPage } from "../../present/page.ts";
import { getScheduleId } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";

export const listEffectsRoute = defineRoute({
  method: "get",
  path: "/v1/effects",
  tag: "effects",
  summary: "List effects of accepted results, newest first",
  description: "`?state=uncertain` are those that wait for a person's decision.",
  roles: READERS,
  params: noFields,
  query: z.strictObject({
    state: z.enum(EFFECT_STATES).optional().describe("What is so now: not stable over pages"),
    kind: z.enum(EFFECT_KINDS).optional(),
    scheduleId: z.string().max(300).optional().describe("Only effects of this schedule's runs"),
    limit: limitSchema,
    after: afterSchema,
  }),
  answer: pageAnswer(effectListItemSchema),
  problems: ["invalid-cursor", "not-found"],
  async handle({ query }, context, caller) {
    const { state, kind, limit } = query;
    const scheduleId =
      query.scheduleId === undefined ? undefined : await getScheduleId(context, caller, query.scheduleId);
    const list = JSON.stringify(["effects", caller.tenantId, state, kind, scheduleId]);
    const afterId = query.after === undefined ? undefined : String(context.cursors.read(list, query.after)[0]);
    const rows = await listEffects(context.db, caller.tenantId, {
      limit: limit + 1,
      ...(afterId === undefined ? {} : { afterId }),
      ...(state === undefined ? {} : { state }),
      ...(kind === undefined ? {} : { kind }),
      ...(scheduleId === undefined ? {} : { scheduleId }),
    });
    return replyWithPage(context, list, { rows, limit, positionOf: (row) => row.id, present: presentEffect });
  },
});

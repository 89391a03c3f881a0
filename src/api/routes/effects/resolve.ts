import { z } from "zod";
import { DECISIONS, resolveEffect } from "../../../authority/effects/resolve.ts";
import { findEffect } from "../../../store/reads/effects.ts";
import { WRITERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { effectListItemSchema, presentEffect } from "../../present/effect.ts";
import { Problem } from "../../problems/problem.ts";
import { getEffectId, noSuchEffect } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { effectParams } from "./params.ts";

export const resolveEffectRoute = defineRoute({
  method: "post",
  path: "/v1/effects/{effect}/resolve",
  tag: "effects",
  summary: "Decide what is to become of an effect that is uncertain or has failed",
  description:
    "`sent`: it did happen. `resend`: send it (again) under the same action id; it may happen twice. `drop`: leave it. A pending effect can be dropped, a failed one be sent again or dropped. Who decided, and why, is kept.",
  roles: WRITERS,
  params: effectParams,
  query: noFields,
  body: z.strictObject({
    outcome: z.enum(DECISIONS),
    reason: z.string().min(1).max(1000).describe("Why, for the history"),
  }),
  example: { outcome: "sent", reason: "The customer has the email" },
  answer: {
    kind: "ok",
    description: "The effect after the decision",
    schema: z.strictObject({
      effect: effectListItemSchema,
      changed: z.boolean().describe("false: it was so already"),
    }),
  },
  problems: ["not-found", "effect-sending", "effect-settled", "result-expired", "busy"],
  async handle({ params, body }, context, caller) {
    const effectId = getEffectId(params.effect);
    const outcome = await resolveEffect(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      effectId,
      decision: body.outcome,
      reason: body.reason,
    });
    switch (outcome.kind) {
      case "not-found":
        throw noSuchEffect(params.effect);
      case "sending":
        throw new Problem("effect-sending", "The effect is being sent right now", { headers: { "retry-after": "10" } });
      case "settled":
        throw new Problem("effect-settled", `The effect is ${outcome.state}: "${body.outcome}" cannot be decided`, {
          more: { state: outcome.state },
        });
      case "result-expired":
        throw new Problem("result-expired", "Retention has removed the result that the effect speaks of");
      case "resolved":
      case "repeated": {
        const effect = await findEffect(context.db, caller.tenantId, effectId);
        return { kind: "ok", body: { effect: presentEffect(effect!), changed: outcome.kind === "resolved" } };
      }
    }
  },
});

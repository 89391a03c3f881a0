import { findEffect, listSendAttempts } from "../../../store/reads/effects.ts";
import { READERS } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { effectDetailSchema, presentEffectDetail } from "../../present/effect.ts";
import { getEffectId, noSuchEffect } from "../../resolve.ts";
import { defineRoute } from "../../route.ts";
import { effectParams } from "./params.ts";

export const getEffectRoute = defineRoute({
  method: "get",
  path: "/v1/effects/{effect}",
  tag: "effects",
  summary: "Show an effect and every attempt to send it",
  roles: READERS,
  params: effectParams,
  query: noFields,
  answer: { kind: "ok", description: "The effect as it stands", schema: effectDetailSchema },
  problems: ["not-found"],
  async handle({ params }, context, caller) {
    const id = getEffectId(params.effect);
    const found = await findEffect(context.db, caller.tenantId, id);
    if (found === undefined) throw noSuchEffect(params.effect);
    return { kind: "ok", body: presentEffectDetail(found, await listSendAttempts(context.db, caller.tenantId, id)) };
  },
});

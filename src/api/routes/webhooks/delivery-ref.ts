import { z } from "zod";
import type { Uuid } from "../../../kernel/ids.ts";
import { readDelivery } from "../../../store/reads/webhooks/webhooks.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { presentDelivery } from "../../present/webhooks/webhook.ts";
import { Problem } from "../../problems/problem.ts";
import { webhookParams } from "./webhook-ref.ts";

export const deliveryParams = webhookParams.extend({
  delivery: z.string().max(20).describe("Delivery id, a number"),
});

export function noSuchDelivery(ref: string): Problem {
  return new Problem("not-found", `The webhook has no delivery ${JSON.stringify(ref.slice(0, 20))}`);
}

export function getDeliveryId(ref: string): bigint {
  if (!/^[1-9]\d{0,17}$/.test(ref)) throw noSuchDelivery(ref);
  return BigInt(ref);
}

export async function shownDelivery(context: ApiContext, caller: Caller, endpointId: Uuid, ref: string) {
  const found = await readDelivery(context.db, caller.tenantId, endpointId, getDeliveryId(ref));
  if (found === undefined) throw noSuchDelivery(ref);
  return presentDelivery(found);
}

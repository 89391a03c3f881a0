import { z } from "zod";
import { MOST_WEBHOOKS, webhookFields } from "../../../domain/webhooks/definition.ts";
import { readId, type Uuid } from "../../../kernel/ids.ts";
import { findScheduleIds } from "../../../store/reads/schedules.ts";
import { readWebhook } from "../../../store/reads/webhooks/webhooks.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { findTargetFault } from "../../input/check-targets.ts";
import { presentWebhook } from "../../present/webhooks/webhook.ts";
import { Problem, problemOfFaults } from "../../problems/problem.ts";

export const webhookParams = z.strictObject({ webhook: z.string().max(100).describe("Webhook id, `whk_…`") });

/** What a change may name: nothing of it has a default. */
export const webhookChange = z.strictObject({
  url: webhookFields.shape.url.optional(),
  events: webhookFields.shape.events.optional(),
  description: webhookFields.shape.description.unwrap().optional(),
  scheduleIds: webhookFields.shape.scheduleIds.unwrap().optional(),
  lateAfterMs: webhookFields.shape.lateAfterMs.unwrap().optional(),
});

export function noSuchWebhook(ref: string): Problem {
  return new Problem("not-found", `There is no webhook ${JSON.stringify(ref.slice(0, 100))}`);
}

export function getWebhookId(ref: string): Uuid {
  const id = readId("whk", ref);
  if (id === undefined) throw noSuchWebhook(ref);
  return id;
}

/** As people see it after a change. */
export async function shownWebhook(context: ApiContext, caller: Caller, id: Uuid, ref: string) {
  const view = await readWebhook(context.db, caller.tenantId, id);
  if (view === undefined) throw noSuchWebhook(ref);
  return presentWebhook(view);
}

export function tooManyWebhooks(used: number): Problem {
  return new Problem("too-many-webhooks", `The tenant has ${used} webhooks; ${MOST_WEBHOOKS} are allowed`, {
    more: { limit: MOST_WEBHOOKS, used },
  });
}

export function checkUrl(context: ApiContext, caller: Caller, url: string): void {
  const fault = findTargetFault(context, caller, "url", url);
  if (fault !== undefined) throw problemOfFaults("invalid-request", [fault]);
}

/** The tenant's own schedules behind these names; one that is not there is refused. */
export async function readScheduleIds(context: ApiContext, caller: Caller, refs: readonly string[]): Promise<Uuid[]> {
  const asked = refs.map((ref) =>
    ref.startsWith("key:") ? { key: ref.slice("key:".length) } : { id: readId("sch", ref) },
  );
  const known = await findScheduleIds(context.db, caller.tenantId, {
    ids: asked.flatMap(({ id }) => id ?? []),
    keys: asked.flatMap(({ key }) => key ?? []),
  });
  const found = asked.map(({ id, key }) =>
    key !== undefined ? known.byKey.get(key) : id !== undefined && known.ids.has(id) ? id : undefined,
  );
  const faults = refs.flatMap((ref, i) =>
    found[i] === undefined
      ? [
          {
            field: `scheduleIds[${i}]`,
            message: "is no schedule of this tenant",
            found: JSON.stringify(ref),
            allowed: "an id such as sch_…, or key:<key>",
          },
        ]
      : [],
  );
  if (faults.length > 0) throw problemOfFaults("invalid-request", faults);
  return [...new Set(found.flatMap((id) => id ?? []))];
}

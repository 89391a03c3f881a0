import { z } from "zod";
import { failRuns } from "../../authority/attempts/fail.ts";
import type { Grant } from "../../authority/attempts/grant.ts";
import { openPayload } from "../../authority/secrets/open-payload.ts";
import { messageOf } from "../../kernel/errors.ts";
import { showId } from "../../kernel/ids.ts";
import type { ApiContext } from "../context.ts";
import { payloadSchema, shownInstant } from "../input/fields.ts";
import { showInstant } from "../present/instant.ts";

export const grantSchema = z.strictObject({
  runId: z.string(),
  attempt: z.int(),
  fence: z.string().describe("Grows with every attempt; said again in every call about this one"),
  idempotencyKey: z.string().describe("The same in every attempt of the run: for calls elsewhere"),
  scheduleId: z.string().nullable().describe("null: an ad hoc run"),
  scheduledAt: shownInstant.describe("Nominal instant: what “now” should mean, also when it is late"),
  dueAt: shownInstant,
  startedAt: shownInstant,
  deadlineAt: shownInstant.describe("When the attempt is over at the latest"),
  timeoutMs: z.int().describe("The same, from the start of the attempt: for clocks that differ from ours"),
  job: z.strictObject({ name: z.string(), version: z.int() }),
  payload: payloadSchema.describe("With its secrets opened"),
});

export const termsSchema = z
  .strictObject({
    ttlMs: z.int().describe("A lease lasts so long from each heartbeat on"),
    heartbeatMs: z.int().describe("Send heartbeats so often"),
    marginMs: z
      .int()
      .describe("Trust a lease until `ttlMs - marginMs` after the call that gave or renewed it was sent, not longer"),
  })
  .describe("The terms of leases");

export function termsOf({ authority }: Pick<ApiContext, "authority">) {
  const { ttlMs, heartbeatMs, marginMs } = authority.settings.lease;
  return { ttlMs, heartbeatMs, marginMs };
}

/** A key may be mended by its operator: it is tried again, and not at once. */
const RETRY_AFTER_MS = 15_000;

/**
 * Grants as their worker gets them, payloads opened. An attempt whose payload cannot be opened has failed, and is left out:
 * nobody could do its work.
 */
export async function showGrants(context: ApiContext, grants: readonly Grant[]) {
  const shown = await Promise.all(grants.map((grant) => showGrant(context, grant)));
  return shown.filter((one) => one !== undefined);
}

async function showGrant(context: ApiContext, grant: Grant): Promise<z.input<typeof grantSchema> | undefined> {
  const { authority } = context;
  const { runId, fence, job } = grant;
  let { payload } = grant;
  if (grant.maySeal) {
    try {
      ({ payload } = await openPayload(authority.vault, grant.tenantId, payload, () => []));
    } catch (error) {
      const failure = { transient: true, code: "secret-unavailable", message: messageOf(error) };
      await failRuns(authority, [{ runId, fence, failure: { ...failure, retryAfterMs: RETRY_AFTER_MS } }]);
      return undefined;
    }
  }
  if (job.kind !== "remote") return undefined;
  const shownId = showId("run", runId);
  return {
    runId: shownId,
    attempt: grant.attempt,
    fence: String(fence),
    idempotencyKey: shownId,
    scheduleId: grant.scheduleId === null ? null : showId("sch", grant.scheduleId),
    scheduledAt: showInstant(grant.scheduledAt),
    dueAt: showInstant(grant.dueAt),
    startedAt: showInstant(grant.startedAt),
    deadlineAt: showInstant(grant.deadlineAt),
    timeoutMs: Math.round(grant.deadlineAt - grant.startedAt),
    job: { name: job.name, version: job.version },
    payload,
  };
}

import type { EffectRequest } from "../../domain/effects/facts.ts";
import { decideSend } from "../../domain/effects/settlement.ts";
import { type Fence, fenceOf } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { insertSendAttempts } from "../../store/rows/effects/attempts.ts";
import { type EffectRow, lockEffects, lockEffectsSkipping, updateEffects } from "../../store/rows/effects/effects.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";
import { settled, standingOf } from "./standing.ts";

export type SendRequest = {
  claimId: Uuid;
  sender: string;
  effectIds: readonly Uuid[];
  /** How long nobody else may send them; longer than the longest send. */
  leaseMs: number;
  /** The same claim was sent before and its answer never came. */
  repeated: boolean;
};

/** Leave to try an effect once. */
export type SendGrant = {
  effectId: Uuid;
  tenantId: Uuid;
  actionId: string;
  attempt: number;
  fence: Fence;
  request: EffectRequest;
  /** Where the result's bytes are, if the run has one: this version and no other. */
  result: { uri: string; version: string | null } | null;
};

const READ_OBJECTS = sql("send_effect_objects", "select id, uri, version from object where id = any($1::uuid[])");

/**
 * Turns pending effects into attempts to send them. The adapter is called by the caller, after the commit.
 * Locks   effects, skipping what others hold; a repeat waits for them.
 * Time    authority time, the server's identity and fences, after the locks: nothing is sent from a copy that may have
 *         lost commits.
 * Writes  effect, effect_attempt. One in doubt whose key the other side may have forgotten is not sent but settled.
 * Replay  the same claim id: the same grants.
 */
export async function sendEffects(authority: Authority, request: SendRequest): Promise<SendGrant[]> {
  const done = await authority.transact("send-effect", async (tx) => {
    const rows = request.repeated
      ? await lockEffects(tx, request.effectIds)
      : await lockEffectsSkipping(tx, request.effectIds);
    if (request.repeated) {
      const saved = rows.filter((row) => row.state === "sending" && row.claim_id === request.claimId);
      if (saved.length > 0) return { grants: await toGrants(tx, saved), given: [] };
    }
    await authority.faults.reach("send-effect:locked");
    const server = await readServer(tx, rows.length);
    const nowAt = server.now;

    const sending: EffectRow[] = [];
    const given: EffectRow[] = [];
    rows.forEach((row, i) => {
      const decision = decideSend(standingOf(row), nowAt);
      if (decision.kind === "settle") given.push(settled(row, decision.settlement, nowAt));
      if (decision.kind !== "send") return;
      sending.push({
        ...row,
        state: "sending",
        attempts: row.attempts + 1,
        budget_attempts: row.budget_attempts + 1,
        fence: fenceOf(server.epoch, server.fences[i]!),
        claim_id: request.claimId,
        lease_until: nowAt + request.leaseMs,
        first_sent_at: row.first_sent_at ?? nowAt,
      });
    });
    await updateEffects(tx, [...sending, ...given]);
    await insertSendAttempts(
      tx,
      sending.map((row) => ({ effectId: row.id, n: row.attempts, fence: row.fence! })),
      request.sender,
      nowAt,
    );
    await authority.faults.reach("send-effect:written");
    return { grants: await toGrants(tx, sending), given };
  });
  for (const row of done.given) authority.metrics.effectsSettled.inc({ kind: row.kind, outcome: row.state });
  return done.grants;
}

async function toGrants(tx: Transaction, rows: readonly EffectRow[]): Promise<SendGrant[]> {
  const objects = rows.flatMap((row) => (row.object_id === null ? [] : [row.object_id]));
  const found =
    objects.length === 0
      ? []
      : await tx.query<{ id: Uuid; uri: string; version: string | null }>(READ_OBJECTS, [objects]);
  const places = new Map(found.map(({ id, uri, version }) => [id, { uri, version }]));
  return rows.map((row) => ({
    effectId: row.id,
    tenantId: row.tenant_id,
    actionId: row.action_id,
    attempt: row.attempts,
    fence: row.fence!,
    request: row.request,
    result: (row.object_id === null ? undefined : places.get(row.object_id)) ?? null,
  }));
}

import { hasExpiredLink } from "../../domain/effects/facts.ts";
import { isKeyKnown } from "../../domain/effects/settlement.ts";
import type { EffectState } from "../../domain/effects/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { type EffectRow, lockEffects, updateEffects } from "../../store/rows/effects/effects.ts";
import { lockObjects } from "../../store/rows/objects/objects.ts";
import { isLockTimeout } from "../../store/sql-errors.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";
import { renewLink } from "./links.ts";
import { standingOf } from "./standing.ts";

const READ_OBJECT = sql("resolve_effect_object", "select object_id from effect where id = $1");

/** What a person decides: it did happen, send it (again), or leave it. */
export const DECISIONS = ["sent", "resend", "drop"] as const;
export type Decision = (typeof DECISIONS)[number];

export type ResolveOutcome =
  | { kind: "resolved" | "repeated" }
  /** An attempt is being made, or it has been settled another way. */
  | { kind: "sending" | "settled"; state: EffectState }
  /** It cannot be sent again: retention has taken the result it speaks of. */
  | { kind: "result-expired" }
  | { kind: "not-found" };

/**
 * A person decides what nobody knows, or what has failed; a pending effect can only be dropped.
 * Locks   the object it would need again, waiting for a cleanup; the effect, waiting for who settles it.
 * Time    authority time, after the lock.
 * Writes  effect, object (a link that is renewed pins it), audit_event.
 * Replay  `repeated`.
 */
export async function resolveEffect(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; effectId: Uuid; decision: Decision; reason: string },
): Promise<ResolveOutcome> {
  const { tenantId, actor, effectId, decision, reason } = request;
  const outcome = await transactOrRefuse<ResolveOutcome>(authority, "resolve-effect", async (tx) => {
    const { object, row } = await lockBoth(tx, effectId).catch((error: unknown) => {
      if (isLockTimeout(error)) lookAgain();
      throw error;
    });
    if (row === undefined || row.tenant_id !== tenantId) return refuse<ResolveOutcome>({ kind: "not-found" });
    await authority.faults.reach("resolve-effect:locked");
    if (isDone(row, decision)) return { kind: "repeated" };
    if (row.state === "sending") return refuse<ResolveOutcome>({ kind: "sending", state: row.state });
    const mayDecide =
      row.state === "uncertain" ||
      (row.state === "failed" && decision !== "sent") ||
      (row.state === "pending" && decision === "drop");
    if (!mayDecide) return refuse<ResolveOutcome>({ kind: "settled", state: row.state });
    // Long after its bytes, the object's row is forgotten, too.
    if (decision === "resend" && row.object_id !== null && object?.state !== "referenced") {
      return refuse<ResolveOutcome>({ kind: "result-expired" });
    }
    const nowAt = await tx.authorityNow();
    if (decision === "resend" && needsNewLink(row, nowAt)) await renewLink(tx, row, nowAt);
    await updateEffects(tx, [decision === "resend" ? sentAnew(row, nowAt) : closed(row, decision, actor, nowAt)]);
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "effect.resolve",
      subject: effectId,
      before: { state: row.state, attempts: row.attempts, message: row.error_message },
      after: { decision, reason },
    });
    return { kind: "resolved" };
  });
  if (outcome.kind === "resolved" && decision === "resend") authority.signals.effectsDue();
  return outcome;
}

/** Settled effects hold no object, so one that is opened again must know that its object is not going at this moment. */
async function lockBoth(tx: Transaction, effectId: Uuid) {
  const [found] = await tx.query<{ object_id: Uuid | null }>(READ_OBJECT, [effectId]);
  const objects = await lockObjects(tx, found?.object_id == null ? [] : [found.object_id]);
  const [row] = await lockEffects(tx, [effectId]);
  return { object: [...objects.values()][0], row };
}

function isDone(row: EffectRow, decision: Decision): boolean {
  if (decision === "resend") return row.state === "pending";
  return row.state === "resolved" && row.resolution === (decision === "sent" ? "sent" : "dropped");
}

/**
 * What its receiver may know under this key should not be said otherwise; past that it is another message anyway. With a
 * link that has expired it would not be sent at all.
 */
function needsNewLink(row: EffectRow, nowAt: Instant): boolean {
  return !isKeyKnown(standingOf(row), nowAt) || hasExpiredLink(row.request.facts, nowAt);
}

/**
 * A fresh budget under the same action id; whoever asks for it takes it upon himself that it may happen twice. That it
 * may have happened is not forgotten by it, and the other side knows the key no longer than it did.
 */
function sentAnew(row: EffectRow, nowAt: Instant): EffectRow {
  return {
    ...row,
    state: "pending",
    next_attempt_at: nowAt,
    budget_attempts: 0,
    budget_from: nowAt,
    in_doubt: false,
    doubted_before: row.doubted_before || row.in_doubt,
    first_sent_at: isKeyKnown(standingOf(row), nowAt) ? row.first_sent_at : null,
    settled_at: null,
  };
}

function closed(row: EffectRow, decision: "sent" | "drop", actor: string, nowAt: Instant): EffectRow {
  return {
    ...row,
    state: "resolved",
    resolution: decision === "sent" ? "sent" : "dropped",
    resolved_by: actor,
    settled_at: nowAt,
  };
}

import type { EffectStanding, Settlement } from "../../domain/effects/settlement.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { EffectRow } from "../../store/rows/effects/effects.ts";

/** An effect as the domain decides on it. */
export function standingOf(row: EffectRow): EffectStanding {
  return {
    state: row.state,
    effect: row.request.effect,
    nextAttemptAt: row.next_attempt_at,
    firstSentAt: row.first_sent_at,
    inDoubt: row.in_doubt,
    doubtedBefore: row.doubted_before,
    budgetAttempts: row.budget_attempts,
    budgetFrom: row.budget_from,
  };
}

/** The row as a settlement leaves it. */
export function settled(row: EffectRow, settlement: Settlement, nowAt: Instant): EffectRow {
  const { state } = settlement;
  const isSettled = state === "sent" || state === "failed" || state === "resolved";
  return {
    ...row,
    state,
    lease_until: null,
    claim_id: null,
    settled_at: isSettled ? nowAt : null,
    resolution: state === "resolved" ? settlement.resolution : null,
    next_attempt_at: state === "pending" ? settlement.nextAttemptAt : row.next_attempt_at,
    in_doubt: state === "pending" ? settlement.inDoubt : state === "uncertain" || row.in_doubt,
  };
}

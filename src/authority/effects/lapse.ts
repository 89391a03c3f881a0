import { decideSettlement } from "../../domain/effects/settlement.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { closeSendAttempts } from "../../store/rows/effects/attempts.ts";
import { type EffectRow, lockEffectsSkipping, updateEffects } from "../../store/rows/effects/effects.ts";
import type { Authority } from "../authority.ts";
import { settled, standingOf } from "./standing.ts";

const MESSAGE = "the sender was not heard of again: nobody knows whether it was sent";

/**
 * Gives up on senders that were not heard of: what they were sending may have happened.
 * Locks   effects, skipping what others hold (a report in flight wins).
 * Time    authority time, after the locks.
 * Writes  effect, effect_attempt.
 * Replay  nothing: they are not sending any more.
 */
export async function lapseEffects(authority: Authority, effectIds: readonly Uuid[]): Promise<number> {
  if (effectIds.length === 0) return 0;
  const lapsed = await authority.transact("lapse-effect", async (tx) => {
    const rows = await lockEffectsSkipping(tx, effectIds);
    await authority.faults.reach("lapse-effect:locked");
    const nowAt = await tx.authorityNow();
    const over = rows.filter((row) => row.state === "sending" && row.lease_until! < nowAt);
    const after = over.map((row): EffectRow => {
      const settlement = decideSettlement(
        standingOf(row),
        { kind: "unknown", message: MESSAGE },
        nowAt,
        authority.chance(),
      );
      return { ...settled(row, settlement, nowAt), error_message: MESSAGE };
    });
    await updateEffects(tx, after);
    await closeSendAttempts(
      tx,
      over.map((row) => ({ effectId: row.id, n: row.attempts, outcome: "lapsed", externalId: null, message: MESSAGE })),
      nowAt,
    );
    return after;
  });
  for (const row of lapsed) {
    authority.metrics.effectsSettled.inc({ kind: row.kind, outcome: row.state === "pending" ? "retry" : row.state });
  }
  if (lapsed.some((row) => row.state === "pending")) authority.signals.effectsDue();
  return lapsed.length;
}

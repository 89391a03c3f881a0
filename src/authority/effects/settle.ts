import { decideSettlement, isHeard, type SendReport } from "../../domain/effects/settlement.ts";
import type { EffectState, SendOutcome } from "../../domain/effects/states.ts";
import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { storableText } from "../../kernel/storable.ts";
import { closeSendAttempts, readSendAttempts } from "../../store/rows/effects/attempts.ts";
import { type EffectRow, lockEffects, updateEffects } from "../../store/rows/effects/effects.ts";
import type { Authority } from "../authority.ts";
import { settled, standingOf } from "./standing.ts";

export type SettleReport = { effectId: Uuid; fence: Fence; report: SendReport };

/** `already-settled`: this attempt has said so before. `stale-fence`: somebody else has sent it since, or decided it. */
export type SettleOutcome =
  | { kind: "settled"; state: EffectState }
  | { kind: "already-settled"; state: EffectState }
  | { kind: "stale-fence" };

/**
 * Records what came of attempts to send.
 * Locks   effects.
 * Time    authority time, after the locks.
 * Writes  effect, effect_attempt.
 * Replay  `already-settled`, nothing written.
 */
export async function settleEffects(authority: Authority, reports: readonly SettleReport[]): Promise<SettleOutcome[]> {
  const done = await authority.transact("settle-effect", async (tx) => {
    const rows = await lockEffects(tx, [...new Set(reports.map((one) => one.effectId))]);
    const effects = new Map(rows.map((row) => [row.id, row]));
    const attempts = new Map(
      (await readSendAttempts(tx, reports)).map((one) => [`${one.effect_id} ${one.fence}`, one]),
    );
    await authority.faults.reach("settle-effect:locked");
    const nowAt = await tx.authorityNow();

    const changed = new Map<Uuid, EffectRow>();
    const ends: Parameters<typeof closeSendAttempts>[1][number][] = [];
    const outcomes = reports.map(({ effectId, fence, report }): SettleOutcome => {
      const row = effects.get(effectId);
      const attempt = attempts.get(`${effectId} ${fence}`);
      if (row === undefined || attempt === undefined) return { kind: "stale-fence" };
      if (!isHeard(row, attempt, report)) {
        const isRepeat = row.fence === fence && attempt.outcome === outcomeOf(report);
        return isRepeat ? { kind: "already-settled", state: row.state } : { kind: "stale-fence" };
      }
      const message = report.message === null ? null : storableText(report.message);
      const externalId =
        report.kind === "sent" && report.externalId !== null ? storableText(report.externalId, 500) : null;
      const settlement = decideSettlement(standingOf(row), report, nowAt, authority.chance());
      const after: EffectRow = {
        ...settled(row, settlement, nowAt),
        external_id: externalId ?? row.external_id,
        error_message: message,
        // What was never tried costs nothing.
        budget_attempts: row.budget_attempts - (report.kind === "not-sent" ? 1 : 0),
      };
      attempt.outcome = outcomeOf(report);
      effects.set(effectId, after);
      changed.set(effectId, after);
      ends.push({ effectId, n: attempt.n, outcome: outcomeOf(report), externalId, message });
      return { kind: "settled", state: after.state };
    });
    await updateEffects(tx, [...changed.values()]);
    await closeSendAttempts(tx, ends, nowAt);
    await authority.faults.reach("settle-effect:written");
    return { outcomes, changed: [...changed.values()] };
  });
  for (const row of done.changed) {
    authority.metrics.effectsSettled.inc({ kind: row.kind, outcome: row.state === "pending" ? "retry" : row.state });
  }
  return done.outcomes;
}

function outcomeOf(report: SendReport): SendOutcome {
  return report.kind;
}

import { MAY_BE_LOST } from "../../domain/effects/settlement.ts";
import { nextEpoch } from "../../domain/fence.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import {
  doubtEffects,
  findNewestRecovery,
  insertRecovery,
  lockOpenEffects,
  lockRecorded,
  lockRunning,
  raiseEpoch,
  readIdentity,
  renewAllLeases,
} from "../../store/rows/recovery.ts";
import type { Authority } from "../authority.ts";
import { SYSTEM } from "../timezones/adopt.ts";
import { type Difference, differencesOf } from "./doubts.ts";

export type RecoverOutcome =
  | { kind: "recovered"; epoch: number; before: number; differences: Difference[]; runs: number; effects: number }
  /** The server is the recorded one; `unfinished`: what follows the epoch has not been put right yet. */
  | { kind: "not-needed"; epoch: number; unfinished: boolean };

/**
 * Makes this server the authority, after a restore or a promotion that may have lost commits.
 * Locks   authority_epoch, then running live runs, then open effects.
 * Time    authority time, after the locks.
 * Writes  authority_epoch: every fence from now on is greater than any that was given out in what is lost. live_run: each
 *         running attempt gets one term to be heard of, since its worker may well live; what is not heard of expires
 *         without being held against its run (its fence is of an older epoch). effect: what is pending or being sent may
 *         have been sent, so it goes on as its `onUncertain` says. recovery, which casts the same doubt on effects of runs
 *         that were due before it (see effectIntentsOf). audit_event.
 * Replay  `not-needed`.
 */
export function recoverAuthority(
  authority: Authority,
  request: {
    actor: string;
    reason: string;
    /** The server says that it is the recorded one, and somebody knows better. */
    anyway: boolean;
    /** Nothing is missing in this copy: effects are what they say. */
    nothingLost: boolean;
  },
): Promise<RecoverOutcome> {
  const { actor, reason, nothingLost } = request;
  return authority.transact("recover", async (tx) => {
    const recorded = await lockRecorded(tx);
    const here = await readIdentity(tx);
    const differences = differencesOf(recorded, here);
    if (differences.length === 0 && !request.anyway) {
      const newest = await findNewestRecovery(tx);
      return { kind: "not-needed", epoch: recorded.epoch, unfinished: newest?.finishedAt === null };
    }
    const running = await lockRunning(tx);
    const effects = nothingLost ? [] : await lockOpenEffects(tx);
    const nowAt = await tx.authorityNow();
    const epoch = nextEpoch(recorded.epoch, nowAt);
    await raiseEpoch(tx, epoch, here, nowAt);
    await renewAllLeases(tx, running, nowAt + authority.settings.lease.ttlMs);
    await doubtEffects(tx, effects, MAY_BE_LOST, nowAt);
    const findings = { before: recorded, here, differences, runs: running.length, effects: effects.length };
    await insertRecovery(tx, { epoch, actor, reason, findings, nothingLost }, nowAt);
    const after = { epoch, differences, runs: running.length, effects: effects.length, reason };
    await writeAudit(tx, {
      tenantId: SYSTEM,
      actor,
      action: "authority.recover",
      subject: String(epoch),
      before: recorded,
      after,
    });
    await authority.faults.reach("recover:written");
    return {
      kind: "recovered",
      epoch,
      before: recorded.epoch,
      differences,
      runs: running.length,
      effects: effects.length,
    };
  });
}

import type { Instant } from "../kernel/clock.ts";

/** A fence is the authority's epoch (high bits) and a sequence: it grows with every claim, over restores too. */
export type Fence = bigint;

const SEQUENCE_BITS = 40n;

export function fenceOf(epoch: number, sequence: bigint): Fence {
  return (BigInt(epoch) << SEQUENCE_BITS) + sequence;
}

const EPOCHS_BEGIN_AT = Date.UTC(2025, 0, 1);
const EPOCH_STEP_MS = 600_000;

/**
 * The epoch after a recovery. It goes with the clock, because the restored copy does not know how often its own future was
 * recovered: whoever restores twice the same backup, ten minutes apart or more, gets two epochs. Lasts until 2104.
 */
export function nextEpoch(epoch: number, nowAt: Instant): number {
  return Math.max(epoch + 1, Math.floor((nowAt - EPOCHS_BEGIN_AT) / EPOCH_STEP_MS));
}

export function epochOf(fence: Fence): number {
  return Number(fence >> SEQUENCE_BITS);
}

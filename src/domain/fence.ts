/** A fence is the authority's epoch (high bits) and a sequence: it grows with every claim, over restores too. */
export type Fence = bigint;

const SEQUENCE_BITS = 40n;

export function fenceOf(epoch: number, sequence: bigint): Fence {
  return (BigInt(epoch) << SEQUENCE_BITS) + sequence;
}

export function epochOf(fence: Fence): number {
  return Number(fence >> SEQUENCE_BITS);
}

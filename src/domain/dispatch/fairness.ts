/**
 * Which tenants may fill the free slots of a pool. Weighted fair queueing over *slots in use*: the next slot goes to
 * whoever holds the fewest for its weight, so a tenant with long runs stands back however little it asks for. Tenants
 * that hold equally much (all of them, where runs are quick) are ordered by what they were given so far.
 *
 * Work-conserving with one exception: a tenant at or above its share never takes the reserved fraction of the slots,
 * so that whoever comes next finds a slot even where borrowed ones are held for hours.
 */
export type Contender = {
  tenantId: string;
  /** Positive; twice the weight, twice the slots. */
  weight: number;
  /** Slots this tenant holds in this pool. */
  inUse: number;
  /** What it was given so far, divided by its weight (see `chargeFor`). */
  virtualTime: number;
  /** At most so many slots now. */
  wants: number;
};

export type Pool = {
  slots: number;
  /** Slots held by all tenants. */
  inUse: number;
  /** Part of the slots, 0 to below 1, that tenants at or above their share never take. */
  reservedFraction: number;
  /** Weights of all tenants that use this pool at all, also of those that want nothing now. */
  totalWeight: number;
};

export type Allotment = { tenantId: string; slots: number };

/** Hands out at most `wanted` free slots. Every tenant is entitled to one slot at least, however small its share. */
export function shareOut(pool: Pool, contenders: readonly Contender[], wanted: number): Allotment[] {
  let free = Math.min(wanted, pool.slots - pool.inUse);
  let idle = pool.slots - pool.inUse;
  const reserved = Math.floor(pool.slots * pool.reservedFraction);
  const totalWeight = Math.max(
    pool.totalWeight,
    contenders.reduce((sum, one) => sum + one.weight, 0),
  );
  const heap = contenders.filter((one) => one.wants > 0).map((one) => ({ ...one, given: 0 }));
  for (let at = (heap.length >> 1) - 1; at >= 0; at--) sink(heap, at);
  const winners: Standing[] = [];
  while (free > 0 && heap.length > 0) {
    const first = heap[0]!;
    const share = Math.max(1, (pool.slots * first.weight) / totalWeight);
    const withinShare = first.inUse + 1 <= share;
    if (first.given >= first.wants || (!withinShare && idle <= reserved)) {
      // Not for this tenant, now and for the rest of this call; others may still be entitled.
      const last = heap.pop()!;
      if (heap.length > 0) heap[0] = last;
    } else {
      if (first.given === 0) winners.push(first);
      first.given += 1;
      first.inUse += 1;
      first.virtualTime += 1 / first.weight;
      free -= 1;
      idle -= 1;
    }
    sink(heap, 0);
  }
  return winners.map(({ tenantId, given }) => ({ tenantId, slots: given }));
}

/** The new virtual time of a tenant that was given `slots`. `floor`: where the pool stands, so that idling saves nothing up. */
export function chargeFor(virtualTime: number, slots: number, weight: number, floor: number): number {
  return Math.max(virtualTime, floor) + slots / weight;
}

type Standing = Contender & { given: number };

function isBefore(a: Standing, b: Standing): boolean {
  const [left, right] = [a.inUse / a.weight, b.inUse / b.weight];
  return left === right ? a.virtualTime < b.virtualTime : left < right;
}

function sink(heap: Standing[], from: number): void {
  for (let at = from; ; ) {
    let least = at;
    for (const child of [2 * at + 1, 2 * at + 2]) {
      if (child < heap.length && isBefore(heap[child]!, heap[least]!)) least = child;
    }
    if (least === at) return;
    [heap[at], heap[least]] = [heap[least]!, heap[at]!];
    at = least;
  }
}

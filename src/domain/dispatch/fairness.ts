/**
 * Which tenants may fill the free slots of a pool. Weighted fair queueing over *slots in use*: the next slot goes to
 * whoever has the least for its weight, counting what it holds and what it has held lately (see slot-accounts.ts). What
 * it holds makes a tenant with long runs stand back however little it asks for; what it has held makes shares of less
 * than one slot exact, where tenants can only take turns.
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
  /** Slot time it has had so far (slot-ms), divided by its weight. */
  virtualTime: number;
  /** At most so many slots now. */
  wants: number;
};

export type Pool = {
  slots: number;
  /** Slots held by all tenants. */
  inUse: number;
  /** Part of the slots, 0 to below 1, that tenants at or above their share never take. Rounded down to whole slots. */
  reservedFraction: number;
  /** Weights of all tenants that use this pool at all, also of those that want nothing now. */
  totalWeight: number;
};

export type Allotment = { tenantId: string; slots: number };

/**
 * How far the past counts: a slot held now weighs as much as one that was held for so long. Also the longest time that
 * anybody waits because it had more than its share before. Long enough to level runs of a second in a crowd whose
 * shares are a tenth of a slot; short enough that a night of borrowing is forgiven in a moment.
 */
export const MEMORY_MS = 10_000;

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
    const withinShare = first.inUse < share;
    if (first.given >= first.wants || (!withinShare && idle <= reserved)) {
      // Not for this tenant, now and for the rest of this call; others may still be entitled.
      const last = heap.pop()!;
      if (heap.length > 0) heap[0] = last;
    } else {
      if (first.given === 0) winners.push(first);
      first.given += 1;
      first.inUse += 1;
      free -= 1;
      idle -= 1;
    }
    sink(heap, 0);
  }
  return winners.map(({ tenantId, given }) => ({ tenantId, slots: given }));
}

/** Contenders in the order in which they would be given their next slot. */
export function inOrder(contenders: readonly Contender[]): Contender[] {
  return contenders.toSorted((a, b) => rank(a) - rank(b));
}

type Standing = Contender & { given: number };

/** Slots for its weight: those it holds, and those that its past is worth. */
function rank(one: Contender): number {
  return one.inUse / one.weight + one.virtualTime / MEMORY_MS;
}

function isBefore(a: Standing, b: Standing): boolean {
  return rank(a) < rank(b);
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

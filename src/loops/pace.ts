/**
 * How many items go into one transaction, so that it takes about `targetMs`: learnt from how long the ones before took,
 * because that depends on the machine and on what the items come to. Twice as many or half as many at a time: one slow
 * transaction is no rule.
 */
export type Pace = {
  readonly size: number;
  /** So many items took so long; what was less than a full piece says nothing of the size. */
  took(items: number, ms: number): void;
};

export function createPace(options: { targetMs: number; first: number; least: number; most: number }): Pace {
  const { targetMs, first, least, most } = options;
  let size = first;
  return {
    get size() {
      return size;
    },
    took(items, ms) {
      if (items < size && ms < targetMs) return;
      const wanted = size * Math.min(2, Math.max(0.5, targetMs / Math.max(1, ms)));
      size = Math.round(Math.min(most, Math.max(least, wanted)));
    },
  };
}

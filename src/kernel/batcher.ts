import { bug } from "./errors.ts";

/**
 * Group commit: callers hand in single items, one transaction takes all that gathered while the previous one ran.
 *
 * - One batch at a time per lane (a lane is a running slot; `lanes` run side by side).
 * - The handler returns exactly one outcome per item, in order; each outcome goes to exactly one waiter.
 * - A batch that throws an error for which `isPoison` holds is split in halves until the poisoned item stands alone
 *   and fails clearly; its neighbours commit. Any other error fails the whole batch: its outcome may be unknown, and
 *   the callers repeat with their natural keys.
 */
export type Batcher<Item, Outcome> = {
  submit(item: Item): Promise<Outcome>;
  /** Resolves when everything handed in so far has been answered. */
  drain(): Promise<void>;
  readonly waiting: number;
};

type Waiter<Item, Outcome> = { item: Item; resolve(outcome: Outcome): void; reject(error: unknown): void };

export function createBatcher<Item, Outcome>(options: {
  run(items: readonly Item[]): Promise<readonly Outcome[]>;
  maxItems: number;
  lanes: number;
  isPoison(error: unknown): boolean;
}): Batcher<Item, Outcome> {
  const queue: Waiter<Item, Outcome>[] = [];
  const active = new Set<Promise<void>>();

  async function settle(batch: readonly Waiter<Item, Outcome>[]): Promise<void> {
    let outcomes: readonly Outcome[];
    try {
      outcomes = await options.run(batch.map((waiter) => waiter.item));
    } catch (error) {
      if (batch.length > 1 && options.isPoison(error)) {
        const middle = batch.length >> 1;
        await settle(batch.slice(0, middle));
        await settle(batch.slice(middle));
        return;
      }
      for (const waiter of batch) waiter.reject(error);
      return;
    }
    if (outcomes.length !== batch.length) {
      const error = bug("a batch must answer every item", { items: batch.length, outcomes: outcomes.length });
      for (const waiter of batch) waiter.reject(error);
      return;
    }
    batch.forEach((waiter, i) => {
      waiter.resolve(outcomes[i]!);
    });
  }

  function pump(): void {
    while (queue.length > 0 && active.size < options.lanes) {
      const lane = settle(queue.splice(0, options.maxItems)).finally(() => {
        active.delete(lane);
        pump();
      });
      active.add(lane);
    }
  }

  return {
    submit(item) {
      return new Promise<Outcome>((resolve, reject) => {
        queue.push({ item, resolve, reject });
        // Everything handed in during this tick travels together.
        if (queue.length === 1) queueMicrotask(pump);
      });
    },
    async drain() {
      while (queue.length > 0 || active.size > 0) {
        pump();
        await Promise.all(active);
      }
    },
    get waiting() {
      return queue.length;
    },
  };
}

import type { Authority } from "../authority/authority.ts";
import { findDirectWork } from "../authority/dispatch/direct.ts";
import type { Consumer } from "../hints/consumer.ts";
import type { FetchedHint } from "../hints/queues.ts";

/** A hint in a worker's hands: what to claim, and how to say that it was. */
export type Hint = {
  rowId: bigint;
  epoch: number;
  tenantId: string;
  class: string;
  runCount: number;
  /** Present when it came through Redis. */
  fetched?: FetchedHint;
};

/** Where hints come from. `againAt` is when it is worth asking again (process clock); undefined: when woken. */
export type Source = {
  take(class_: string, slots: number): Promise<{ hints: Hint[]; againAt?: number | undefined }>;
  /** Their claims have committed. */
  acknowledge(hints: readonly Hint[]): void;
  /** Their claims failed: they stay fetched, and the sweeper publishes their rows again if those are still there. */
  abandon(hints: readonly Hint[]): void;
};

/** Through Redis: the ordinary way. */
export function redisSource(consumer: Consumer): Source {
  return {
    async take(class_, slots) {
      const fetched = await consumer.fetch(class_, slots);
      return {
        hints: fetched.map((one) => ({
          rowId: one.rowId,
          epoch: one.epoch,
          tenantId: one.tenantId,
          class: one.class,
          runCount: one.runCount,
          fetched: one,
        })),
      };
    },
    acknowledge(hints) {
      void consumer.acknowledge(hints.flatMap((hint) => (hint.fetched === undefined ? [] : [hint.fetched])));
    },
    abandon(hints) {
      for (const { fetched } of hints) {
        if (fetched !== undefined) consumer.ended(fetched.tenantId, fetched.class, fetched.runCount);
      }
    },
  };
}

/** Straight from the outbox: while Redis does not answer, or where there is none. */
export function directSource(authority: Authority): Source {
  /** Calls so far, per class: tenants that are equal otherwise come first in turn. */
  const turns = new Map<string, number>();
  return {
    async take(class_, slots) {
      const turn = turns.get(class_) ?? 0;
      turns.set(class_, turn + 1);
      const work = await findDirectWork(authority, class_, slots, turn);
      const againAt = work.nextAt === null ? undefined : authority.clock.now() + (work.nextAt - work.nowAt);
      return { hints: work.hints.map((hint) => ({ ...hint, class: class_ })), againAt };
    },
    acknowledge() {},
    abandon() {},
  };
}

/** Redis while it answers, the outbox while it does not. */
export function eitherSource(redis: Source, direct: Source, available: () => boolean): Source {
  return {
    take: (class_, slots) => (available() ? redis : direct).take(class_, slots),
    acknowledge: (hints) => redis.acknowledge(hints),
    abandon: (hints) => redis.abandon(hints),
  };
}

import type { Authority } from "../authority/authority.ts";
import { findDirectWork } from "../authority/dispatch/direct.ts";
import type { SlotAccounts } from "../domain/dispatch/slot-accounts.ts";
import type { Consumer } from "../hints/consumer.ts";
import type { FetchedHint } from "../hints/queues.ts";

/** A hint in a worker's hands: what to claim, and how to say that it was. */
export type Hint = {
  rowId: bigint;
  epoch: number;
  tenantId: string;
  class: string;
  runCount: number;
  /** Present when it came through Redis, which has counted it against its tenant's start rate. */
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
      consumer.abandon(hints.flatMap((hint) => (hint.fetched === undefined ? [] : [hint.fetched])));
    },
  };
}

/** Straight from the outbox: while Redis does not answer, or where there is none. */
export function directSource(authority: Authority, accounts: ReadonlyMap<string, SlotAccounts>): Source {
  const giveBack = (hints: readonly Hint[]) => {
    for (const hint of hints) {
      if (hint.fetched === undefined) accounts.get(hint.class)!.hold(hint.tenantId, -hint.runCount);
    }
  };
  return {
    async take(class_, slots) {
      const mine = accounts.get(class_)!;
      const work = await findDirectWork(authority, class_, slots, mine);
      for (const hint of work.hints) {
        mine.hold(hint.tenantId, hint.runCount);
        mine.charge(hint.tenantId, hint.runCount);
      }
      const againAt = work.nextAt === null ? undefined : authority.clock.now() + (work.nextAt - work.nowAt);
      return { hints: work.hints.map((hint) => ({ ...hint, class: class_ })), againAt };
    },
    acknowledge: giveBack,
    abandon: giveBack,
  };
}

/** Redis while it answers, the outbox while it does not. */
export function eitherSource(redis: Source, direct: Source, available: () => boolean): Source {
  return {
    take: (class_, slots) => (available() ? redis : direct).take(class_, slots),
    // Each knows its own.
    acknowledge(hints) {
      redis.acknowledge(hints);
      direct.acknowledge(hints);
    },
    abandon(hints) {
      redis.abandon(hints);
      direct.abandon(hints);
    },
  };
}

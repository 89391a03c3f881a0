import type { SlotAccounts } from "../domain/dispatch/slot-accounts.ts";
import type { Clock, Timer } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Service } from "../kernel/service.ts";
import { createAcknowledger } from "./acknowledger.ts";
import type { HintRedis } from "./connection.ts";
import { LanePool, type Pick } from "./lanes.ts";
import { readyTopic } from "./names.ts";
import { type FetchedHint, HintQueues } from "./queues.ts";
import { readReadySince } from "./ready.ts";
import type { Waker } from "./wake.ts";

export type ConsumerOptions = {
  redis: HintRedis;
  waker: Waker;
  clock: Clock;
  log: Log;
  /** What this worker process serves, and whose its slots are. */
  classes: readonly { class: string; accounts: SlotAccounts }[];
  /** Pause between two looks at the ready set when no wake-up comes. Default 1,000 ms. */
  lookEveryMs?: number;
  /** Lanes (tenant × class) remembered per class. Default 20,000. */
  capacity?: number;
};

/** Fetches hints for one worker process, fairly over all tenants, through one connection. */
export type Consumer = Service & {
  /**
   * At most `wanted` slots' worth of hints (a hint may turn out to carry more runs than its queue's last one did).
   * Fewer than wanted does not mean that there are no more; none at all means that there is nothing, that everybody is
   * limited or above its share, or that Redis does not answer. Never rejects. Each hint must come back through
   * `acknowledge`.
   */
  fetch(class_: string, wanted: number): Promise<FetchedHint[]>;
  /** Ends hints whose runs were each claimed or refused. What Redis cannot take now is kept and tried again. Never rejects. */
  acknowledge(hints: readonly FetchedHint[]): Promise<void>;
  /** Calls back when the class may have something to fetch. Best effort. Returns the unsubscribe. */
  onReady(class_: string, callback: () => void): () => void;
  /** Tenants with published rows, from PostgreSQL: their queues are looked at again, whatever Redis said. */
  remind(class_: string, tenantIds: Iterable<string>): void;
  /**
   * These will not come back through `acknowledge`: nobody knows whether they were claimed. Whoever takes a run counts
   * it with the accounts before its hint is acknowledged.
   */
  abandon(hints: readonly FetchedHint[]): void;
};

// Under a full load of lane 0 and 1, every 20th hint of a queue is still one of lane 2: the 5 % of the design.
const LIFT_EVERY = 20;
const FULL_LOOK_EVERY = 30;

export function createConsumer(options: ConsumerOptions): Consumer {
  const { redis, waker, clock, log, lookEveryMs = 1_000 } = options;
  const capacity = options.capacity ?? 20_000;
  const queues = new HintQueues(redis, capacity);
  const acknowledger = createAcknowledger({ redis, queues, log });
  const classes = new Map(options.classes.map((one) => [one.class, openClass(one.accounts)]));
  const unsubscribes: (() => void)[] = [];
  let timer: Timer | undefined;
  let running = false;
  let looks = 0;
  let looking: Promise<void> | undefined;

  function openClass(accounts: SlotAccounts) {
    const pool = new LanePool({ accounts, capacity });
    return {
      pool,
      accounts,
      callbacks: new Set<() => void>(),
      mayHaveNews: true,
      limitTimer: undefined as Timer | undefined,
    };
  }

  function classOf(class_: string) {
    const found = classes.get(class_);
    if (found === undefined) throw new RangeError(`class ${JSON.stringify(class_)} is not served by this worker`);
    return found;
  }

  function announce(class_: string): void {
    for (const callback of classOf(class_).callbacks) callback();
  }

  /** Reads what was published since the last look. Resolves to whether that was news. */
  async function look(class_: string): Promise<boolean> {
    const one = classOf(class_);
    one.mayHaveNews = false;
    try {
      let news = false;
      for (const { tenantId, sequence } of await readReadySince(redis, class_, one.pool.readUpTo)) {
        news = one.pool.published(tenantId, sequence) || news;
      }
      return news;
    } catch (error) {
      one.mayHaveNews = true;
      unreachable(error, "Reading the ready set failed");
      return false;
    }
  }

  function unreachable(error: unknown, message: string): void {
    log.debug({ error: messageOf(error) }, message);
    redis.suspect();
  }

  async function take(class_: string, pick: Pick): Promise<FetchedHint[]> {
    const { pool } = classOf(class_);
    const { lane } = pick;
    const hints: FetchedHint[] = [];
    let limitedMs = 0;
    let failed: unknown;
    const replies = Array.from({ length: pick.hints }, () => queues.fetch(lane.tenantId, class_));
    for (const reply of await Promise.allSettled(replies)) {
      if (reply.status === "rejected") failed = reply.reason;
      else if (reply.value.hint !== undefined) hints.push(reply.value.hint);
      else limitedMs = Math.max(limitedMs, reply.value.limitedMs);
    }
    pool.delivered(
      pick,
      hints.map((hint) => hint.runCount),
    );
    if (failed !== undefined) unreachable(failed, "Fetching hints failed");
    else if (limitedMs > 0) limit(class_, pick, limitedMs);
    else if (hints.length < pick.hints) pool.empty(pick);
    lane.sinceLift += hints.length;
    if (lane.sinceLift >= LIFT_EVERY) {
      lane.sinceLift = 0;
      queues.lift(lane.tenantId, class_).catch(() => undefined);
    }
    return hints;
  }

  function limit(class_: string, { lane }: Pick, limitedMs: number): void {
    const one = classOf(class_);
    one.pool.limitUntil(lane, clock.now() + limitedMs);
    if (!running) return;
    one.limitTimer?.cancel();
    // A timer may be a hair early, the limit may not.
    one.limitTimer = clock.after(one.pool.nextLimitEnd - clock.now() + 1, () => {
      one.limitTimer = undefined;
      announce(class_);
    });
  }

  function giveBack(hints: readonly FetchedHint[]): void {
    for (const hint of hints) classOf(hint.class).accounts.hold(hint.tenantId, -hint.runCount);
  }

  async function fetch(class_: string, wanted: number): Promise<FetchedHint[]> {
    const one = classOf(class_);
    if (!redis.health().available) return [];
    try {
      await queues.open();
    } catch (error) {
      unreachable(error, "Opening the hint queues failed");
      return [];
    }
    const hints: FetchedHint[] = [];
    let left = wanted;
    while (left > 0 && redis.health().available) {
      one.pool.releaseLimited(clock.now());
      if (one.mayHaveNews) await look(class_);
      const picks = one.pool.pick(left);
      if (picks.length === 0) break;
      const some = (await Promise.all(picks.map((pick) => take(class_, pick)))).flat();
      // What was found must not wait while queues that turn out to be empty are asked one after the other.
      if (some.length === 0 && hints.length > 0) break;
      for (const hint of some) left -= hint.runCount;
      hints.push(...some);
    }
    return hints;
  }

  /** The net under lost wake-ups: a look every second, and every half minute from the beginning. */
  async function lookAll(): Promise<void> {
    if (!redis.health().available) return;
    looks += 1;
    await acknowledger.retry();
    for (const [class_, one] of classes) {
      if (looks % FULL_LOOK_EVERY === 0) one.pool.readUpTo = 0;
      const isNews = await look(class_);
      one.pool.releaseLimited(clock.now());
      if (isNews || one.pool.hasReady()) announce(class_);
    }
  }

  function lookLater(): void {
    timer = clock.after(lookEveryMs, () => {
      looking = lookAll().finally(() => {
        if (running) lookLater();
      });
    });
  }

  return {
    name: "hint-consumer",
    fetch,
    async acknowledge(hints) {
      giveBack(hints);
      await acknowledger.acknowledge(hints);
    },
    onReady(class_, callback) {
      const { callbacks } = classOf(class_);
      callbacks.add(callback);
      return () => callbacks.delete(callback);
    },
    remind(class_, tenantIds) {
      const { pool } = classOf(class_);
      for (const tenantId of tenantIds) pool.remind(tenantId);
      if (pool.hasReady()) announce(class_);
    },
    abandon: giveBack,
    async start() {
      if (running) return;
      running = true;
      for (const [class_, one] of classes) {
        const wake = () => {
          one.mayHaveNews = true;
          announce(class_);
        };
        unsubscribes.push(waker.on(readyTopic(class_), wake));
      }
      lookLater();
    },
    async stop() {
      running = false;
      timer?.cancel();
      for (const one of classes.values()) one.limitTimer?.cancel();
      for (const unsubscribe of unsubscribes.splice(0)) unsubscribe();
      await looking;
    },
  };
}

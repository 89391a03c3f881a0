import { LRUCache } from "lru-cache";
import { type RateLimiterAbstract, RateLimiterMemory, RateLimiterRedis, RateLimiterRes } from "rate-limiter-flexible";
import type { Clock } from "../kernel/clock.ts";
import type { HintRedis } from "./connection.ts";

/** So many in a window of so many seconds that begins with the first of them. */
export type CallLimit = { points: number; seconds: number };

export type Taken = {
  isAllowed: boolean;
  remaining: number;
  /** Until the window ends, and with it the count. */
  resetMs: number;
};

/** Counts calls, so that no caller has more than its share. Never throws, and never waits long. */
export type CallLimits = {
  take(key: string, limit: CallLimit): Promise<Taken>;
};

/** Redis is worth so much of a caller's time; after a silence the next calls do not ask it at all. */
const ANSWER_WITHIN_MS = 100;
const SILENT_FOR_MS = 2_000;
/** Different limits that are remembered; of one that is forgotten, only what memory counted is lost. */
const MOST_LIMITS = 1_000;

type Limiter = { memory: RateLimiterAbstract; shared: RateLimiterAbstract | undefined };

/**
 * Counts in Redis, for all processes together. Without one, and while it does not answer, each process counts by itself
 * in memory: a caller may then have its share once a process.
 */
export function createCallLimits(deps: { redis: HintRedis | undefined; clock: Clock }): CallLimits {
  const { redis, clock } = deps;
  const limiters = new LRUCache<string, Limiter>({ max: MOST_LIMITS });
  let silentUntil = Number.NEGATIVE_INFINITY;

  function limiterOf({ points, seconds }: CallLimit): Limiter {
    const name = `${points}/${seconds}`;
    let limiter = limiters.get(name);
    if (limiter === undefined) {
      const window = { keyPrefix: redis?.names.callsKey() ?? "calls", points, duration: seconds };
      const memory = new RateLimiterMemory(window);
      const storeClient = redis?.client;
      // What Redis answers with an error, memory answers.
      const insured = { ...window, storeClient, rejectIfRedisNotReady: true, insuranceLimiter: memory };
      limiter = { memory, shared: storeClient === undefined ? undefined : new RateLimiterRedis(insured) };
      limiters.set(name, limiter);
    }
    return limiter;
  }

  return {
    async take(key, limit) {
      const { memory, shared } = limiterOf(limit);
      const isSilent = redis?.health().available !== true || clock.monotonic() < silentUntil;
      if (shared === undefined || isSilent) return consume(memory, key);
      const asked = consume(shared, key);
      const answer = await within(clock, ANSWER_WITHIN_MS, asked);
      if (answer !== undefined) return answer;
      silentUntil = clock.monotonic() + SILENT_FOR_MS;
      return consume(memory, key);
    },
  };
}

/** What is over the limit is thrown by the library, as an answer like the others. */
async function consume(limiter: RateLimiterAbstract, key: string): Promise<Taken> {
  const [answer, isAllowed] = await limiter.consume(key).then(
    (res) => [res, true] as const,
    (res: unknown) => {
      if (res instanceof RateLimiterRes) return [res, false] as const;
      throw res;
    },
  );
  return { isAllowed, remaining: answer.remainingPoints, resetMs: Math.max(0, answer.msBeforeNext) };
}

/** Undefined: there was no answer in time, or none that can be used. */
async function within<T>(clock: Clock, ms: number, asked: Promise<T>): Promise<T | undefined> {
  return new Promise((resolve) => {
    const timer = clock.after(ms, () => resolve(undefined));
    asked.then(resolve, () => resolve(undefined)).finally(() => timer.cancel());
  });
}

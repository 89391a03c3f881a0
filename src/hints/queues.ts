import type { RedisQueueBackend } from "bullmq";
import { LRUCache } from "lru-cache";
import type { HintRedis } from "./connection.ts";
import { parseHintJobId, queueName } from "./names.ts";

export type FetchedHint = {
  hintId: string;
  rowId: bigint;
  shard: number;
  epoch: number;
  publishNo: number;
  tenantId: string;
  class: string;
  runCount: number;
};

/** What one non-blocking fetch brought: a hint, or how long the queue's start rate forbids one (0: it is empty). */
export type FetchReply = { hint: FetchedHint } | { hint: undefined; limitedMs: number };

// Token "0" is BullMQ's word for "no lock". The claim in PostgreSQL decides who runs what; a lock would cost Redis four
// commands a hint, and would keep the sweeper from retiring a hint whose fetcher died.
const NO_LOCK = "0";
// The tail that Bull Board shows of what was claimed (completed) and what was lost (failed), per queue.
const KEPT = { count: 50 };
const SECOND_PRIORITY = 2 * 0x1_0000_0000;

/**
 * BullMQ's own transitions on thousands of queues through one connection. A queue costs a `RedisQueueBackend` sibling
 * (a few strings), not a Worker with timers, locks and a blocking connection; nothing here knows BullMQ's scripts or key layout
 * beyond `keys.prioritized`.
 */
export class HintQueues {
  private readonly redis: HintRedis;
  private readonly siblings: LRUCache<string, RedisQueueBackend>;
  private root: RedisQueueBackend | undefined;

  constructor(redis: HintRedis, capacity: number) {
    this.redis = redis;
    this.siblings = new LRUCache({ max: capacity });
  }

  /** Must have resolved before the first of the others. Rejects while Redis is away. */
  async open(): Promise<void> {
    this.root ??= await this.redis.backend();
  }

  async fetch(tenantId: string, class_: string): Promise<FetchReply> {
    const [job, id, limitedMs] = await this.queue(tenantId, class_).moveToActive(NO_LOCK);
    if (!id) return { hint: undefined, limitedMs: Number(limitedMs ?? 0) };
    const identity = parseHintJobId(id);
    // A job that somebody put there by hand: take it out of the way, it names no row.
    if (identity === undefined) {
      await this.discard(tenantId, class_, id, "not a hint");
      return this.fetch(tenantId, class_);
    }
    return { hint: { hintId: id, ...identity, tenantId, class: class_, runCount: runsOf(job?.data) } };
  }

  /** Ends a hint. Resolves also when Redis no longer has it. */
  async complete(tenantId: string, class_: string, hintId: string): Promise<void> {
    const queue = this.queue(tenantId, class_);
    await forgiving(queue.moveToCompleted(asJob(hintId), null, KEPT, NO_LOCK, false));
  }

  /** Ends a fetched hint that nobody will claim, visibly. Resolves also when Redis no longer has it. */
  async discard(tenantId: string, class_: string, hintId: string, why: string): Promise<void> {
    await forgiving(this.queue(tenantId, class_).moveToFailed(asJob(hintId), why, KEPT, NO_LOCK, false));
  }

  /** Lets the oldest waiting lane-2 hint go next. */
  async lift(tenantId: string, class_: string): Promise<void> {
    const queue = this.queue(tenantId, class_);
    const oldest = await this.redis.client.zrangebyscore(
      queue.keys.prioritized!,
      SECOND_PRIORITY,
      "+inf",
      "LIMIT",
      0,
      1,
    );
    if (oldest[0] !== undefined) await forgiving(queue.changePriority(oldest[0], 0, true));
  }

  /** Key of the hash of one hint. */
  jobKey(tenantId: string, class_: string, hintId: string): string {
    return this.queue(tenantId, class_).toKey(hintId);
  }

  /** Ids fetched and not yet ended, oldest first, at most `most`. */
  async active(tenantId: string, class_: string, most: number): Promise<string[]> {
    const ids = await this.redis.client.lrange(this.queue(tenantId, class_).keys.active!, -most, -1);
    return ids.reverse();
  }

  private queue(tenantId: string, class_: string): RedisQueueBackend {
    if (this.root === undefined) throw new Error("HintQueues.open() was not awaited");
    const name = queueName(tenantId, class_);
    let queue = this.siblings.get(name);
    if (queue === undefined) {
      queue = this.root.forQueue(name) as RedisQueueBackend;
      this.siblings.set(name, queue);
    }
    return queue;
  }
}

function asJob(id: string) {
  // One attempt: BullMQ must not think of retries.
  return { id, opts: { attempts: 1 } } as Parameters<RedisQueueBackend["moveToCompleted"]>[0];
}

function runsOf(data: unknown): number {
  const match = typeof data === "string" ? /"runs":(\d+)/.exec(data) : null;
  return match === null ? 1 : Math.max(1, Number(match[1]));
}

/** BullMQ throws errors with a negative `code` for jobs that are gone or elsewhere; to us that is done. */
async function forgiving(work: Promise<unknown>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(typeof (error as { code?: unknown }).code === "number")) throw error;
  }
}

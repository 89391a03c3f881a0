import { type JobsOptions, type KeysMap, QueueKeys, type RedisQueueBackend } from "bullmq";
import type { Clock } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { HintRedis } from "./connection.ts";
import { hintJobId, isQueue, queueName, readyTopic } from "./names.ts";
import { createRateLimits, type StartRate } from "./rate-limits.ts";
import { defineMarkReady, forgetReadyBefore, MARK_READY_COMMAND, markReadyArguments } from "./ready.ts";

/** An outbox row that is marked as published and committed, and now has to become a hint. */
export type PublishableRow = {
  rowId: bigint;
  publishNo: number;
  epoch: number;
  shard: number;
  tenantId: string;
  class: string;
  /** 0 strict, 1 normal, 2 what may wait. */
  lane: number;
  /** 1 to 32. */
  runCount: number;
};

export type PublishResult<Row> = { published: Row[]; failed: Row[] };

export type LaneRate = { tenantId: string; class: string; rate: StartRate | undefined };

export type Publisher = {
  /**
   * Hands rows to BullMQ, marks their queues as ready and wakes the workers, all in one pipeline per 500 rows. Never
   * rejects and never waits longer than a command timeout per 500 rows, and stops at the first timeout. `failed` rows must be
   * unmarked; some of them may exist in Redis nevertheless, which the claim makes harmless.
   */
  publish<Row extends PublishableRow>(rows: readonly Row[]): Promise<PublishResult<Row>>;
  /**
   * Start rates of tenants' queues (undefined: none). What changed is written at once, or with the next call if Redis
   * does not take it; and whatever there is with each publish to a queue. Never rejects.
   */
  setRateLimits(rates: Iterable<LaneRate>): Promise<void>;
};

type Pipeline = ReturnType<Awaited<RedisQueueBackend["client"]>["pipeline"]>;

const ROWS_PER_PIPELINE = 500;
const FORGET_EVERY_MS = 600_000;
const READY_KEPT_MS = 86_400_000;

/**
 * BullMQ serves its plain list first and then its prioritized set: lane 0 goes to the list (first in, first out, ahead
 * of everything), 1 and 2 into the set. Measured: a prioritized hint costs Redis no more than a plain one (28 µs to
 * add, 80 µs to fetch and acknowledge, noise of 20 %), while LIFO for lane 0 would let its oldest hint starve.
 */
const OPTIONS_BY_LANE: readonly JobsOptions[] = [{}, { priority: 1 }, { priority: 2 }];

export function createPublisher(options: { redis: HintRedis; clock: Clock; log: Log }): Publisher {
  const { redis, clock, log } = options;
  const limits = createRateLimits();
  const keys = new QueueKeys(redis.names.prefix);
  const forgottenAt = new Map<string, number>();
  let epoch: string | null | undefined;
  defineMarkReady(redis);

  async function publishSome<Row extends PublishableRow>(
    backend: RedisQueueBackend,
    rows: readonly Row[],
  ): Promise<PublishResult<Row>> {
    const client = await backend.client;
    const pipeline = client.pipeline();
    const queues = new Map<string, KeysMap>();
    const tenantsByClass = new Map<string, Set<string>>();
    let length = 0;
    const push = (command: string, args: (string | number)[]) => {
      pipeline.runCommand(command, args);
      length += 1;
    };
    push("get", [redis.names.epochKey()]);
    for (const row of rows) {
      const queue = queueName(row.tenantId, row.class);
      if (queues.has(queue)) continue;
      const queueKeys = keys.getKeys(queue);
      queues.set(queue, queueKeys);
      tenantsByClass.set(row.class, (tenantsByClass.get(row.class) ?? new Set()).add(row.tenantId));
      length += tell(pipeline, queue, queueKeys);
    }
    const firstRow = length;
    const timestamp = clock.now();
    for (const row of rows) {
      const job = toJob(row, timestamp);
      const queueKeys = queues.get(queueName(row.tenantId, row.class))!;
      void backend.addJobToTransaction(pipeline, job, job.id, {}, queueKeys).catch(() => undefined);
    }
    length += rows.length;
    for (const [class_, tenantIds] of tenantsByClass) {
      push(MARK_READY_COMMAND, markReadyArguments(redis, class_, tenantIds));
      push("publish", [redis.names.wakeChannel(readyTopic(class_)), ""]);
    }
    const replies = (await pipeline.exec()) as [Error | null, unknown][];
    const seenEpoch = replies[0]?.[0] ? epoch : (replies[0]?.[1] as string | null);
    if (seenEpoch !== epoch) {
      epoch = seenEpoch;
      limits.forget();
    }
    if (replies.slice(1, firstRow).every(([error]) => !error)) limits.confirm(queues.keys());
    // A hint in a queue that is not marked as ready would lie there unseen, and is published again instead.
    const markFailed = replies.slice(firstRow + rows.length).some(([error]) => error);
    const result: PublishResult<Row> = { published: [], failed: [] };
    rows.forEach((row, index) => {
      const [error, id] = replies[firstRow + index] ?? [new Error("no reply"), undefined];
      const ok = !error && !(typeof id === "number" && id < 0) && !markFailed;
      (ok ? result.published : result.failed).push(row);
    });
    const error = replies.find(([one]) => one)?.[0];
    if (error) throwIfUnreachable(error, result);
    return result;
  }

  /** Writes what is to be said to a queue; answers how many commands that takes. */
  function tell(pipeline: Pipeline, queue: string, { meta: key }: KeysMap): number {
    const meta = limits.metaFor(queue);
    if (meta === undefined) return 0;
    pipeline.hset(key!, meta.set);
    if (meta.remove.length === 0) return 1;
    pipeline.runCommand("hdel", [key!, ...meta.remove]);
    return 2;
  }

  /** Hints that stand in a queue are held to its new limit at once, not from its next publish on. */
  async function tellChanges(queues: readonly string[]): Promise<void> {
    const backend = await redis.backend();
    const pipeline = (await backend.client).pipeline();
    for (const queue of queues) tell(pipeline, queue, keys.getKeys(queue));
    const replies = (await pipeline.exec()) as [Error | null, unknown][];
    const error = replies.find(([one]) => one)?.[0];
    if (error) throw error;
    limits.confirm(queues);
  }

  function throwIfUnreachable(error: Error, result: PublishResult<PublishableRow>): void {
    if (result.failed.length === 0) return;
    log.warn({ error: messageOf(error), failed: result.failed.length }, "Publishing hints failed");
    if (/timed out|closed|writeable/i.test(error.message)) redis.suspect();
  }

  async function forgetOldTenants(rows: readonly PublishableRow[]): Promise<void> {
    for (const class_ of new Set(rows.map((row) => row.class))) {
      if (clock.monotonic() - (forgottenAt.get(class_) ?? Number.NEGATIVE_INFINITY) < FORGET_EVERY_MS) continue;
      forgottenAt.set(class_, clock.monotonic());
      await forgetReadyBefore(redis, class_, clock.now() - READY_KEPT_MS).catch(() => undefined);
    }
  }

  return {
    async publish(rows) {
      const sound = rows.filter(isPublishable);
      const result: PublishResult<(typeof rows)[number]> = { published: [], failed: [] };
      if (sound.length < rows.length) {
        result.failed.push(...rows.filter((row) => !isPublishable(row)));
        log.error({ rows: result.failed.map((row) => String(row.rowId)) }, "Outbox rows cannot be published as hints");
      }
      for (let at = 0; at < sound.length; at += ROWS_PER_PIPELINE) {
        const some = sound.slice(at, at + ROWS_PER_PIPELINE);
        if (!redis.health().available) {
          result.failed.push(...some);
          continue;
        }
        try {
          const { published, failed } = await publishSome(await redis.backend(), some);
          result.published.push(...published);
          result.failed.push(...failed);
        } catch (error) {
          log.warn({ error: messageOf(error), failed: some.length }, "Publishing hints failed");
          redis.suspect();
          result.failed.push(...some);
        }
      }
      if (result.published.length > 0) await forgetOldTenants(result.published);
      return result;
    },
    async setRateLimits(rates) {
      for (const { tenantId, class: class_, rate } of rates) limits.set(queueName(tenantId, class_), rate);
      const changed = limits.changed();
      for (let at = 0; at < changed.length && redis.health().available; at += ROWS_PER_PIPELINE) {
        try {
          await tellChanges(changed.slice(at, at + ROWS_PER_PIPELINE));
        } catch (error) {
          log.warn({ error: messageOf(error) }, "Changed start rates could not be written");
          return redis.suspect();
        }
      }
    },
  };
}

/** A row that cannot be named must not take its neighbours down. */
function isPublishable(row: PublishableRow): boolean {
  return isQueue(row.tenantId, row.class) && OPTIONS_BY_LANE[row.lane] !== undefined;
}

function toJob(row: PublishableRow, timestamp: number) {
  const opts = OPTIONS_BY_LANE[row.lane]!;
  // What a person sees in Bull Board; runs must be readable without asking PostgreSQL.
  const data = `{"shard":${row.shard},"epoch":${row.epoch},"row":"${row.rowId}","runs":${row.runCount}}`;
  return {
    id: hintJobId(row),
    name: "hint",
    data,
    opts,
    timestamp,
    progress: 0,
    attemptsMade: 0,
    attemptsStarted: 0,
    failedReason: "",
    returnvalue: "",
    stalledCounter: 0,
  };
}

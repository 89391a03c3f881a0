import { randomUUID } from "node:crypto";
import type { HintRedis } from "./connection.ts";

/** The present epoch of Redis; `isNew` for the one caller that found none and began it. */
export type RedisEpoch = { epoch: string; isNew: boolean };

/** The word under which this Redis remembers us, or undefined after FLUSHALL or failover to an empty replica. */
export async function readRedisEpoch(redis: HintRedis): Promise<string | undefined> {
  return (await redis.client.get(redis.names.epochKey())) ?? undefined;
}

/** Begins a new epoch whatever there was: hints in this Redis are of a past that may not have happened. */
export async function renewRedisEpoch(redis: HintRedis): Promise<void> {
  await redis.client.set(redis.names.epochKey(), randomUUID());
}

/**
 * Begins an epoch if there is none. Whoever gets `isNew` must unpublish every outbox row: none of their hints can
 * exist. Rejects when Redis does not answer. If the caller dies before it unpublished, the hints are still found
 * missing one by one.
 */
export async function establishRedisEpoch(redis: HintRedis): Promise<RedisEpoch> {
  const mine = randomUUID();
  // Not SET … NX GET, which Redis knows from 7.0 only.
  const began = await redis.client.set(redis.names.epochKey(), mine, "NX");
  if (began === "OK") return { epoch: mine, isNew: true };
  const epoch = await readRedisEpoch(redis);
  return epoch === undefined ? establishRedisEpoch(redis) : { epoch, isNew: false };
}

import type { HintRedis } from "./connection.ts";

/**
 * The ready set of a class: tenant id → sequence of its last publish. Whoever fetches remembers the sequence at which
 * it saw a queue empty and skips that queue until the sequence has moved; reading is "everything above the last I saw".
 *
 * The sequence follows the server's clock in µs but never falls back while the key lives, so that it keeps growing even
 * when FLUSHALL takes the key: nobody has to be told to start over. (2^53 µs is the year 2255; doubles hold it exactly.)
 */
const MARK_READY = `
local time = redis.call('TIME')
local sequence = tonumber(redis.call('GET', KEYS[2]) or '0') + 1
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
if now > sequence then sequence = now end
local text = string.format('%.0f', sequence)
redis.call('SET', KEYS[2], text)
for i = 1, #ARGV do redis.call('ZADD', KEYS[1], text, ARGV[i]) end
return text`;

export const MARK_READY_COMMAND = "punctualMarkReady";

/** Teaches `redis.client` (and its pipelines) the script above. */
export function defineMarkReady(redis: HintRedis): void {
  redis.client.defineCommand(MARK_READY_COMMAND, { numberOfKeys: 2, lua: MARK_READY });
}

export function markReadyArguments(redis: HintRedis, class_: string, tenantIds: Iterable<string>): string[] {
  return [redis.names.readyKey(class_), redis.names.readySequenceKey(class_), ...tenantIds];
}

/** Tenants of this class published to after `sequence`, oldest first. */
export async function readReadySince(
  redis: HintRedis,
  class_: string,
  sequence: number,
): Promise<{ tenantId: string; sequence: number }[]> {
  const flat = await redis.client.zrangebyscore(redis.names.readyKey(class_), `(${sequence}`, "+inf", "WITHSCORES");
  const entries = [];
  for (let at = 0; at + 1 < flat.length; at += 2) entries.push({ tenantId: flat[at]!, sequence: Number(flat[at + 1]) });
  return entries;
}

/** Drops tenants that had no publish for so long. Their waiting hints, if any, are found from PostgreSQL. */
export function forgetReadyBefore(redis: HintRedis, class_: string, instantMs: number): Promise<number> {
  return redis.client.zremrangebyscore(redis.names.readyKey(class_), "-inf", Math.floor(instantMs) * 1_000);
}

import { randomBytes } from "node:crypto";
import { inject } from "vitest";
import { type RedisServer, startRedis } from "../../src/app/embedded/redis.ts";

/**
 * Whether this machine has a Redis. Register tests that need it inside `if (redisAvailable)`: without it they are left out,
 * and the run says so in one line.
 */
export const redisAvailable: boolean = inject("redisUrl") !== "";

/** The run's shared Redis: a database number of this worker, and a key prefix nobody else uses. Never FLUSHALL it. */
export function testRedis(): { url: string; prefix: string } {
  const url = new URL(inject("redisUrl"));
  url.pathname = `/${Number(process.env.VITEST_POOL_ID ?? 0) % 256}`;
  return { url: url.href, prefix: `t${randomBytes(6).toString("hex")}` };
}

/** A Redis for this test alone, to flush, stop or kill (`pid`). The caller stops it. */
export function startTestRedis(options: { dataDirectory?: string } = {}): Promise<RedisServer> {
  return startRedis({ binary: inject("redisBinary"), ...options, log: () => undefined });
}

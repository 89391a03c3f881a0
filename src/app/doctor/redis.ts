import { readRedisFindings } from "../../hints/findings.ts";
import { type Check, finding, ok, skipped } from "./check.ts";

export const redisCheck: Check = {
  id: "redis",
  name: "Redis answers and drops nothing",
  async examine({ redis }) {
    if (redis === undefined) return skipped("no Redis is configured: work is taken straight from the outbox");
    if (!redis.health().available) {
      return finding(
        "Redis does not answer",
        "work is taken straight from the outbox: nothing is lost, and quick starts cost more there",
        "start Redis, or correct REDIS_URL",
      );
    }
    const { version, policy, mayEvict } = await readRedisFindings(redis);
    if (!mayEvict) return ok(`version ${version}, ${policy}`);
    return finding(
      `Redis may drop hints when memory is short (maxmemory-policy ${policy})`,
      "hints that were dropped are published again seconds later, so that runs start late",
      "set maxmemory-policy noeviction",
    );
  },
};

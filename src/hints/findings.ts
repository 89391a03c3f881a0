import type { HintRedis } from "./connection.ts";

export type RedisFindings = {
  version: string;
  /** Bytes Redis may use; 0 means no limit. */
  maxMemory: number;
  policy: string;
  /** True when Redis may silently drop hints under memory pressure: it must run with `noeviction`. */
  mayEvict: boolean;
};

/** What `doctor` and readiness have to know about the server. From INFO, which managed services allow where CONFIG is forbidden. */
export async function readRedisFindings(redis: HintRedis): Promise<RedisFindings> {
  const info = await redis.client.info();
  const field = (name: string) => new RegExp(`^${name}:(.*?)\r?$`, "m").exec(info)?.[1] ?? "";
  const policy = field("maxmemory_policy") || "unknown";
  const maxMemory = Number(field("maxmemory")) || 0;
  return { version: field("redis_version"), maxMemory, policy, mayEvict: policy !== "noeviction" };
}

import { join } from "node:path";
import type { Config } from "../config.ts";
import { startPostgres } from "./postgres.ts";
import { findRedisBinary, startRedis } from "./redis.ts";

export type Servers = {
  databaseUrl: string;
  /** Undefined where there is no Redis: dispatch is direct. */
  redisUrl: string | undefined;
  /** Resolves when a server of ours has died under us. */
  lost: Promise<string>;
  stop(): Promise<void>;
};

/** The servers that are named, and our own in place of those that are not. */
export async function startServers(
  config: Config,
  directory: string,
  searchPath: string,
  tell: { say(line: string): void; log(line: string): void },
): Promise<Servers> {
  const own: { exited: Promise<string>; stop(): Promise<void> }[] = [];
  const stop = async () => {
    for (const server of own.toReversed()) await server.stop();
  };
  try {
    let databaseUrl = config.DATABASE_URL;
    if (databaseUrl === undefined) {
      const postgres = await startPostgres({ dataDirectory: join(directory, "postgres"), log: tell.log });
      own.push(postgres);
      databaseUrl = postgres.url;
    }
    let redisUrl = config.REDIS_URL;
    if (redisUrl === undefined) {
      const binary = findRedisBinary(searchPath);
      if (binary === undefined)
        tell.say("No redis-server on PATH: work is taken straight from PostgreSQL, and Bull Board is off.");
      else {
        const redis = await startRedis({ binary, dataDirectory: join(directory, "redis"), log: tell.log });
        own.push(redis);
        redisUrl = redis.url;
      }
    }
    // A Redis that dies costs speed, not runs; without PostgreSQL there is nothing left to do.
    const lost = config.DATABASE_URL === undefined ? own[0]!.exited : new Promise<string>(() => {});
    return { databaseUrl, redisUrl, lost, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

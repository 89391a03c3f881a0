import { assertSchemaFits } from "../../../store/schema-fit.ts";
import type { Config } from "../../config.ts";
import { type Core, createCore } from "../../core.ts";
import { getServers } from "../whereabouts.ts";

/** The database and Redis of DATABASE_URL and REDIS_URL, else of the running system of this checkout. */
export async function withServers<T>(config: Config, work: (core: Core) => Promise<T>): Promise<T> {
  const { databaseUrl, redisUrl } = getServers(config);
  const { REDIS_URL: _, ...rest } = config;
  const core = createCore(
    {
      ...rest,
      DATABASE_URL: databaseUrl,
      ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
      PUNCTUAL_LOG_LEVEL: "silent",
    },
    "recover",
  );
  try {
    await assertSchemaFits(core.db);
    return await work(core);
  } finally {
    await core.close();
  }
}

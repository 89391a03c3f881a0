import { assertSchemaFits } from "../../../store/schema-fit.ts";
import type { Config } from "../../config.ts";
import { type Core, createCore } from "../../core.ts";
import { getServers } from "../whereabouts.ts";

/** For commands that need the database: DATABASE_URL, else that of the running system of this checkout. */
export async function withDatabase<T>(config: Config, work: (core: Core) => Promise<T>): Promise<T> {
  const { databaseUrl } = getServers(config);
  const { REDIS_URL: _, ...rest } = config;
  const core = createCore({ ...rest, DATABASE_URL: databaseUrl, PUNCTUAL_LOG_LEVEL: "silent" }, "calendar");
  try {
    await assertSchemaFits(core.db);
    return await work(core);
  } finally {
    await core.close();
  }
}

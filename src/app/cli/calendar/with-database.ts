import { operatorError } from "../../../kernel/errors.ts";
import { assertSchemaFits } from "../../../store/schema-fit.ts";
import type { Config } from "../../config.ts";
import { type Core, createCore } from "../../core.ts";
import { findWhereabouts } from "../whereabouts.ts";

/** For commands that need the database: DATABASE_URL, else that of the running system of this checkout. */
export async function withDatabase<T>(config: Config, work: (core: Core) => Promise<T>): Promise<T> {
  const url = config.DATABASE_URL ?? findWhereabouts(config.PUNCTUAL_DIR).databaseUrl;
  if (url === undefined) {
    throw operatorError(
      "not-running",
      "no system of this checkout is running (npm start), and DATABASE_URL is not set",
    );
  }
  const { REDIS_URL: _, ...rest } = config;
  const core = createCore({ ...rest, DATABASE_URL: url, PUNCTUAL_LOG_LEVEL: "silent" }, "calendar");
  try {
    await assertSchemaFits(core.db);
    return await work(core);
  } finally {
    await core.close();
  }
}

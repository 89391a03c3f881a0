import { sql } from "../../store/database.ts";
import { type Check, ok } from "./check.ts";

const READ = sql("doctor_version", "select current_setting('server_version') as version");

export const connectionCheck: Check = {
  id: "postgresql",
  name: "PostgreSQL answers",
  async examine({ db }) {
    const rows = await db.query<{ version: string }>(READ);
    return ok(`version ${rows[0]!.version}`);
  },
};

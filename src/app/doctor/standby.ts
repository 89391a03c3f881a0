import { type Queryable, sql } from "../../store/database.ts";
import { type Check, finding, ok } from "./check.ts";

const READ = sql("doctor_standby", "select pg_is_in_recovery() as standby");

/** A server that follows another: it can be read, and nothing else. */
export async function isStandby(db: Queryable): Promise<boolean> {
  return (await db.query<{ standby: boolean }>(READ))[0]!.standby;
}

export const standbyCheck: Check = {
  id: "primary",
  name: "the server takes writes",
  async examine({ db }) {
    if (!(await isStandby(db))) return ok("it is a primary");
    return finding(
      "DATABASE_URL names a read-only standby",
      "no process can work on it; what is told below is what the standby has replayed",
      "name the primary in DATABASE_URL; to look at a standby on purpose, `punctual doctor --only invariant`",
    );
  },
};

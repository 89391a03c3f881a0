import { sql } from "../../store/database.ts";
import { type Check, finding, ok } from "./check.ts";

const READ = sql(
  "doctor_durability",
  `select name, setting from pg_settings where name in ('synchronous_commit', 'fsync', 'full_page_writes') order by name`,
);

/** With a weaker setting a crash may take back a result that was already answered. */
const SAFE: Readonly<Record<string, readonly string[]>> = {
  fsync: ["on"],
  full_page_writes: ["on"],
  synchronous_commit: ["on", "remote_apply"],
};

export const durabilityCheck: Check = {
  id: "durability",
  name: "a commit that was answered survives a crash",
  async examine({ db }) {
    const settings = await db.query<{ name: string; setting: string }>(READ);
    const weak = settings.filter(({ name, setting }) => !SAFE[name]?.includes(setting));
    if (weak.length === 0) return ok(settings.map(({ name, setting }) => `${name} ${setting}`).join(", "));
    return finding(
      `${weak.map(({ name, setting }) => `${name} is ${setting}`).join(", ")}`,
      "a crash of the server may take back a run, a result or a fence that was already answered",
      `set ${weak.map(({ name }) => `${name} = on`).join(" and ")}, for this database and its role too`,
      weak,
    );
  },
};

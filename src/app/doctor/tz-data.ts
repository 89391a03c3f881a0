import { findAdopted, listTzVersions } from "../../store/rows/tz-data.ts";
import { loadTzCandidate } from "../tz-data.ts";
import { type Check, finding, ok, showAge, skipped } from "./check.ts";

/** A walk over ten million schedules takes minutes. */
const WALK_MS = 3_600_000;

export const tzDataCheck: Check = {
  id: "tz-data",
  name: "the tz database is whole",
  async examine({ db, config, now }) {
    const versions = await listTzVersions(db);
    const adopted = await findAdopted(db);
    if (adopted === undefined) return skipped("none is adopted: nothing has been started on this database");
    const { version } = adopted;
    if (versions.find((one) => one.version === version)?.isWhole !== true) {
      return finding(
        `the bytes of ${version}, which is adopted, are not those that were written`,
        "no process can start",
        "restore that row of tz_data from a backup, or `punctual calendar adopt` another version",
      );
    }
    const openMs = adopted.replanned_at === null ? (await now()) - adopted.adopted_at! : 0;
    if (openMs > WALK_MS) {
      return finding(
        `${version} was adopted ${showAge(openMs)} ago, and not every schedule has been looked at since`,
        "schedules in changed zones may run by the old rules until they are touched",
        "see that a sweeper is alive and read its log",
      );
    }
    const own = loadTzCandidate(config.PUNCTUAL_ZONEINFO).zones.version;
    const other =
      own === version ? "" : `; this program brings ${own}: punctual calendar shadow tells what it would move`;
    return ok(`${version} is adopted${other}`);
  },
};

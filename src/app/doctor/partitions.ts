import { createPartitionUpkeep } from "../../store/partitions.ts";
import { type Check, finding, ok } from "./check.ts";

/** The keeper makes 30 days; half of that gone means that it has not worked for two weeks. */
const LEAST_DAYS = 14;

export const partitionsCheck: Check = {
  id: "partitions",
  name: `partitions for ${LEAST_DAYS} days ahead`,
  async examine({ db, config }) {
    const upkeep = createPartitionUpkeep(db, config.PUNCTUAL_PARTITIONS);
    const days = await upkeep.coverageDays({ nowAt: await upkeep.databaseNow() });
    if (days >= LEAST_DAYS) return ok(`${Math.floor(days)} days`);
    return finding(
      `run and attempt have partitions for ${days.toFixed(1)} days only`,
      "instants after that cannot become runs",
      "see why the scheduler's partition keeper cannot make them (its log), and run `punctual migrate`, which makes them too",
    );
  },
};

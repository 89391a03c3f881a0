import type { Instant } from "../../kernel/clock.ts";
import { sql } from "../../store/database.ts";
import { type Check, finding, ok, showAge } from "./check.ts";

/** Any scanner takes a word that is 2 s old, whoever's schedule it is for. */
const LATE_MS = 60_000;

const READ = sql(
  "doctor_told_ends",
  `select clock_timestamp() as now, schedule_id, runs[1] as run_id, available_at as ended_at
     from outbox where kind = 'schedule' and published_at is null order by available_at limit 5`,
);

export const endsCheck: Check = {
  id: "ends",
  name: "schedules hear of the ends of their runs",
  async examine({ careful }) {
    const rows = await careful.query<{ now: Instant; ended_at: Instant }>(READ);
    const [oldest] = rows;
    if (oldest === undefined) return ok("no end waits to be heard");
    const lateMs = oldest.now - oldest.ended_at;
    if (lateMs < LATE_MS) return ok(`the oldest end waits for ${showAge(lateMs)}`);
    return finding(
      `an end has waited for ${showAge(lateMs)} for its schedule to hear of it`,
      "a failure has not paused its schedule (pauseOnFailure), or the next run is not planned (afterCompletion)",
      "see that a scheduler is alive and read its log",
      rows,
    );
  },
};

import { readBacklog } from "../../store/reads/status.ts";
import { type Check, finding, ok, showAge } from "./check.ts";

/** Any scanner takes rows that are 2 s overdue, so this late means that none works, or that none keeps up. */
const LATE_MS = 30_000;

export const cursorsCheck: Check = {
  id: "overdue",
  name: "no schedule is overdue",
  async examine({ db }) {
    const { now, oldestDueAt } = await readBacklog(db);
    const lateMs = oldestDueAt === null ? 0 : now - oldestDueAt;
    if (lateMs < LATE_MS) return ok(oldestDueAt === null ? "none is due" : `the oldest is due for ${showAge(lateMs)}`);
    return finding(
      `a schedule has been due for ${showAge(lateMs)} without becoming a run`,
      "its runs start late, and an instant may come to be treated by the schedule's misfire policy",
      "see that a scheduler is alive and read its log; add one when it works but does not keep up",
    );
  },
};

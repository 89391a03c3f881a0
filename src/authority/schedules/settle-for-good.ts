import type { Transaction } from "../../store/database.ts";
import type { Authority } from "../authority.ts";
import type { MissedAnswer } from "../runs/plan-cursor.ts";
import { type HeardSchedule, type SettledSchedule, settleSchedule } from "./settled-schedule.ts";

const PAUSED: MissedAnswer = { reason: "paused", nothingRuns: true };

/**
 * Settles a schedule whose chain ends here: it is deleted, or edited so that it makes other instants. A paused one owes
 * nothing yet, its instants wait for the resume; now that none comes for them, they are recorded as skips.
 */
export async function settleForGood(
  authority: Authority,
  tx: Transaction,
  locked: HeardSchedule,
): Promise<SettledSchedule> {
  const { schedule, cursor } = locked;
  if (schedule.status !== "paused") return settleSchedule(authority, tx, locked);
  const due = { ...cursor, next_due_at: cursor.next_run_at, fault_retry_at: cursor.fault === null ? null : 0 };
  return settleSchedule(authority, tx, { ...locked, cursor: due }, PAUSED);
}

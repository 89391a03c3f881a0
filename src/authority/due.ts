import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import { findFaulty, findNextDue, findOnTime, findOverdue } from "../store/cursors.ts";
import type { Authority } from "./authority.ts";

/** Looks at the due index without locks; materialize decides. */

export async function findDueOnTime(
  authority: Authority,
  afterAt: Instant,
  mask: string,
  limit: number,
): Promise<Uuid[]> {
  return (await findOnTime(authority.db, afterAt, mask, limit)).map((row) => row.schedule_id);
}

export async function findDueLate(
  authority: Authority,
  untilAt: Instant,
  mask: string,
  limit: number,
): Promise<Uuid[]> {
  return (await findOverdue(authority.db, untilAt, mask, limit)).map((row) => row.schedule_id);
}

export function findFaultySchedules(authority: Authority, limit: number): Promise<Uuid[]> {
  return findFaulty(authority.db, limit);
}

/** Database time, and the next instant anything in these buckets is due (null: nothing is known). */
export async function findNextInstant(
  authority: Authority,
  mask: string,
): Promise<{ nowAt: Instant; nextDueAt: Instant | null }> {
  const row = await findNextDue(authority.db, mask);
  return { nowAt: row.now, nextDueAt: row.next_due_at };
}

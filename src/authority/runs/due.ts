import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import {
  type DueCursor,
  type DueLook,
  findFaulty,
  findNextDue,
  findOnTime,
  findOverdue,
} from "../../store/rows/cursors.ts";
import type { Authority } from "../authority.ts";

/** Looks at the due index without locks; materialize decides. Answers come tenant by tenant. */

export async function findDueOnTime(authority: Authority, afterAt: Instant, look: DueLook): Promise<Uuid[]> {
  return byTenant(await findOnTime(authority.db, afterAt, look));
}

export async function findDueLate(authority: Authority, untilAt: Instant, look: DueLook): Promise<Uuid[]> {
  return byTenant(await findOverdue(authority.db, untilAt, look));
}

export function findFaultySchedules(authority: Authority, look: Omit<DueLook, "mask">): Promise<Uuid[]> {
  return findFaulty(authority.db, look);
}

/**
 * Database time, and the first instant after `afterAt` that anything in these buckets is due at (null: nothing is known).
 * `afterAt` is when the caller last looked at what is due: what became due since must not fall in between.
 */
export async function findNextInstant(
  authority: Authority,
  mask: string,
  afterAt: Instant,
): Promise<{ nowAt: Instant; nextDueAt: Instant | null }> {
  const row = await findNextDue(authority.db, mask, afterAt);
  return { nowAt: row.now, nextDueAt: row.next_due_at };
}

function byTenant(rows: readonly DueCursor[]): Uuid[] {
  return rows.toSorted((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1)).map((row) => row.schedule_id);
}

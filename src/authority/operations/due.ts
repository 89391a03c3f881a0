import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findDueOperations, readOpenOperations } from "../../store/rows/operations/operations.ts";
import type { Authority } from "../authority.ts";
import type { OperationKinds } from "./kind.ts";

/** Operations whose next step may be taken, at most one of each tenant. Kinds of a newer program are left to it. */
export function findDue(authority: Authority, kinds: OperationKinds, limit: number): Promise<Uuid[]> {
  return findDueOperations(authority.db, Object.keys(kinds), limit);
}

/** How many operations are open, and in how many ms the next step of one may be taken (null: none is open). */
export async function readOutlook(authority: Authority): Promise<{ open: number; nextInMs: number | null }> {
  const { now, open, next_step_at } = await readOpenOperations(authority.db);
  const nextAt: Instant | null = next_step_at;
  return { open, nextInMs: nextAt === null ? null : Math.max(0, nextAt - now) };
}

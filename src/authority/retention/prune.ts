import type { Instant } from "../../kernel/clock.ts";
import { readPartitions } from "../../store/partitions.ts";
import { type Limits, pruneAudit, pruneOld, pruneRanges, type RangeAfter } from "../../store/retention/prunes.ts";
import type { Authority } from "../authority.ts";

export type { RangeAfter };

/**
 * Deletes what nobody needs any more, some of each table: what is left of runs below the floor, old request keys, audit
 * events, operations and what webhooks were told, and ranges of skips in front of all history.
 * Locks   the rows it deletes; nobody waits for one of them.
 * Time    none: what is old stays old.
 * Replay  the next rows, or nothing.
 */
export async function prune(
  authority: Authority,
  limits: Limits & { auditBefore: Instant },
  after: RangeAfter | undefined,
  limit: number,
): Promise<{ gone: Record<string, number>; after: RangeAfter | undefined }> {
  const { db } = authority;
  // What belongs to runs goes after them: below the floor some may still be held, or be opened by who has read the old one.
  const oldestAt = (await readPartitions(db)).get("run")?.[0]?.fromAt ?? limits.floorAt;
  const withoutRuns = { ...limits, floorAt: Math.min(limits.floorAt, oldestAt) };
  const gone = await pruneOld(db, withoutRuns, limit);
  const events = await authority.transact("prune-audit", (tx) => pruneAudit(tx, limits.auditBefore, limit));
  if (events > 0) gone.audit_event = events;
  const ranges = await pruneRanges(db, withoutRuns, after, limit);
  if (ranges.gone > 0) gone.skip_range = ranges.gone;
  return { gone, after: ranges.after };
}

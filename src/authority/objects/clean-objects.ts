import { mayDelete } from "../../domain/objects/life.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findExpired, findOrphans, lockLeaving, markDeleting, readTies } from "../../store/rows/objects/going.ts";
import type { Authority } from "../authority.ts";

/**
 * Decides that objects are to go: those that no attempt can publish any more, and results that were kept long enough
 * and that nobody was promised. Their bytes are deleted after the commit.
 * Locks   the objects, skipping what others hold (a publication under way wins); what holds on to them is read after that.
 * Time    authority time, after the locks.
 * Writes  object → deleting: from then on no completion and no download link can name it.
 * Replay  nothing: they are not staged or referenced any more.
 */
export function cleanObjects(authority: Authority, ids: readonly Uuid[], keptMs: number): Promise<readonly Uuid[]> {
  return authority.transact("clean-objects", async (tx) => {
    const objects = await lockLeaving(tx, ids);
    await authority.faults.reach("clean-objects:locked");
    const nowAt = await tx.authorityNow();
    const ties = await readTies(
      tx,
      objects.map((one) => one.id),
    );
    const going = objects.filter((one) => {
      const view = {
        state: one.state,
        grantedUntil: one.granted_until,
        referencedAt: one.referenced_at,
        pinUntil: one.pin_until,
        ...ties.get(one.id)!,
      };
      return mayDelete(view, keptMs, nowAt);
    });
    const gone = going.map((one) => one.id);
    await markDeleting(tx, gone, nowAt);
    await authority.faults.reach("clean-objects:written");
    return gone;
  });
}

/** Objects that seem to have lost their attempt, the longest known first; cleanObjects decides under their locks. */
export function findOrphanObjects(authority: Authority, limit: number): Promise<Uuid[]> {
  return findOrphans(authority.db, limit);
}

/** Results that seem to have been kept long enough. */
export function findExpiredResults(authority: Authority, limit: number, keptMs: number): Promise<Uuid[]> {
  return findExpired(authority.db, limit, keptMs);
}

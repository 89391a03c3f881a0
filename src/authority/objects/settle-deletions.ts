import { lookAgainAt, nextCleanup } from "../../domain/objects/life.ts";
import { backoffMs } from "../../kernel/backoff.ts";
import type { Uuid } from "../../kernel/ids.ts";
import {
  findGoing,
  findNamed,
  forgetObjects,
  lockLeaving,
  markDeleted,
  putOff,
  type StoredName,
} from "../../store/rows/objects/going.ts";
import type { Authority } from "../authority.ts";

const RETRY = { baseMs: 10_000, capMs: 3_600_000, floorMs: 5_000 };

/** What came of the deletion of an object's bytes; `forget`: they have been gone for long. */
export type Deletion = { id: Uuid; outcome: "removed" | "failed" | "forget" };

/**
 * Records what the object store said.
 * Locks   the objects, skipping what another cleaner holds: it records the same.
 * Time    authority time, after the locks.
 * Writes  object: deleting → deleted, to be looked at again when the last upload could have arrived; put off with pauses
 *         that grow; or nothing of it any more.
 * Replay  harmless: deleting what is not there succeeds.
 */
export function settleDeletions(authority: Authority, deletions: readonly Deletion[]): Promise<void> {
  return authority.transact("settle-deletions", async (tx) => {
    const locked = await lockLeaving(
      tx,
      deletions.map((one) => one.id),
    );
    const nowAt = await tx.authorityNow();
    const outcomes = new Map(deletions.map((one) => [one.id, one.outcome]));
    const due = locked.filter((row) => row.clean_at !== null && row.clean_at <= nowAt);
    const those = (outcome: Deletion["outcome"]) => due.filter((row) => outcomes.get(row.id) === outcome);
    await markDeleted(
      tx,
      those("removed").map((row) => ({ id: row.id, cleanAt: lookAgainAt(row.granted_until, nowAt) })),
      nowAt,
    );
    await putOff(
      tx,
      those("failed").map((row) => ({
        id: row.id,
        cleanAt: nowAt + backoffMs(row.clean_tries + 1, RETRY, authority.chance()),
      })),
    );
    await forgetObjects(
      tx,
      those("forget").map((row) => row.id),
    );
  });
}

export type GoingObject = {
  id: Uuid;
  uri: string;
  size: number;
  todo: "delete" | "forget";
  /** `again`: an upload could have arrived after the first deletion. */
  why: "orphan" | "expired" | "again";
};

/** Objects whose bytes are to be deleted now (or once more), or that may be forgotten: the longest due first. */
export async function findGoingObjects(authority: Authority, limit: number): Promise<GoingObject[]> {
  return (await findGoing(authority.db, limit)).map((row) => ({
    id: row.id,
    uri: row.uri,
    size: Number(row.size ?? 0n),
    todo: nextCleanup({ state: row.state, grantedUntil: row.granted_until, deletedAt: row.deleted_at }),
    why: row.state === "deleted" ? "again" : row.referenced_at === null ? "orphan" : "expired",
  }));
}

/** Whether the registry names what was found in the store. */
export function findRegistered(authority: Authority, names: readonly StoredName[]) {
  return findNamed(authority.db, names);
}

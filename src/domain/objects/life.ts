import type { Instant } from "../../kernel/clock.ts";

/** The life cycle of an object: a row of the registry, from before its upload until after its deletion. */
export type ObjectState = "granted" | "staged" | "referenced" | "deleting" | "deleted";

export const OBJECT_EDGES: Readonly<Record<ObjectState, readonly ObjectState[]>> = {
  granted: ["staged", "deleting"],
  staged: ["referenced", "deleting"],
  referenced: ["deleting"],
  deleting: ["deleted"],
  deleted: [], // the row itself goes later
};

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** How long an attempt's grant must be over before that alone makes its object an orphan. */
export const GRANT_MARGIN_MS = MINUTE_MS;
/** A stale worker's upload may arrive this long after its permission ended; its key is deleted again after that. */
const LATE_UPLOAD_MS = 60 * MINUTE_MS;
/** How long the registry remembers what was deleted: as long as the history of its run. */
const REMEMBERED_MS = 30 * DAY_MS;

export type CleanupView = {
  state: ObjectState;
  grantedUntil: Instant;
  referencedAt: Instant | null;
  pinUntil: Instant | null;
  /** Its run is running under the very fence that the object was granted to. */
  attemptHoldsFence: boolean;
  /** Another row of the registry names the same key and is some run's result. */
  keyIsResult: boolean;
  /** An effect that is not settled may still need the bytes. */
  hasUnsettledEffect: boolean;
};

/**
 * Whether the bytes may go. An attempt that lost its fence never gets it back, so an orphan once is an orphan for ever;
 * all the rest is read under the object's lock.
 */
export function mayDelete(object: CleanupView, keptMs: number, nowAt: Instant): boolean {
  switch (object.state) {
    case "granted":
    case "staged": {
      const mayPublish = object.attemptHoldsFence && object.grantedUntil + GRANT_MARGIN_MS > nowAt;
      return !mayPublish && !object.keyIsResult;
    }
    case "referenced": {
      const isKept = object.referencedAt === null || object.referencedAt + keptMs > nowAt;
      const isPinned = object.pinUntil !== null && object.pinUntil > nowAt;
      return !isKept && !isPinned && !object.hasUnsettledEffect;
    }
    default:
      return false;
  }
}

/** From when on no upload to the object's key can arrive any more. */
function quietFrom(grantedUntil: Instant): Instant {
  return grantedUntil + LATE_UPLOAD_MS;
}

/** What the cleaner does with a row whose time has come: what it deleted too early it deletes once more. */
export function nextCleanup(object: {
  state: "deleting" | "deleted";
  grantedUntil: Instant;
  deletedAt: Instant | null;
}): "delete" | "forget" {
  const deletedAt = object.state === "deleting" ? null : object.deletedAt;
  return deletedAt === null || deletedAt < quietFrom(object.grantedUntil) ? "delete" : "forget";
}

/** When the cleaner comes back to a row whose bytes it deleted at `deletedAt`. */
export function lookAgainAt(grantedUntil: Instant, deletedAt: Instant): Instant {
  const quietAt = quietFrom(grantedUntil);
  return deletedAt < quietAt ? quietAt : deletedAt + REMEMBERED_MS;
}

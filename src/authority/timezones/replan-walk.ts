import { changedZones } from "../../domain/recurrence/adoption/changed-zones.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { lockCursorsSkipping } from "../../store/rows/cursors.ts";
import { findStaleWindow, type WalkPosition } from "../../store/rows/stale-cursors.ts";
import { findAdopted, finishReplanning, listTzVersions } from "../../store/rows/tz-data.ts";
import type { Authority } from "../authority.ts";
import { openVersion } from "./pin-zones.ts";
import { planAnew } from "./replan.ts";

/** The version that has been adopted and whose walk is not done yet; undefined: there is nothing to walk for. */
export async function findUnwalked(authority: Authority): Promise<string | undefined> {
  const adopted = await findAdopted(authority.db);
  return adopted === undefined || adopted.replanned_at !== null ? undefined : adopted.version;
}

/** Due schedules that are looked at to tell how many of them are behind. */
const LOOKED_AT = 10_000;

/** Of the schedules due next, how many an adopted version moves and nobody has planned anew yet. */
export async function countBehind(authority: Authority): Promise<number> {
  if ((await findUnwalked(authority)) !== authority.tzVersion) return 0;
  const stale = { otherThan: authority.tzVersion, names: await findChangedNames(authority) };
  return (await findStaleWindow(authority.db, undefined, LOOKED_AT, stale))?.stale.length ?? 0;
}

/** Every name whose rules differ between the adopted version and any other that a cursor may have been planned by. */
export async function findChangedNames(authority: Authority): Promise<string[]> {
  const { db, zones } = authority;
  const names = new Set<string>();
  for (const { version } of await listTzVersions(db)) {
    const other: ZoneSource | undefined = version === zones.version ? zones : await openVersion(authority, db, version);
    for (const name of changedZones(other ?? zones, zones)) names.add(name);
  }
  return [...names];
}

/**
 * Looks at the next window of schedules in the order in which they are due, and plans anew what another version planned
 * and a changed zone touches. Undefined: the walk has come to its end.
 * Locks   cursors, skipping what others hold: those see to it themselves. `skipped` tells how many.
 * Writes  as planAnew.
 */
export async function replanWindow(
  authority: Authority,
  after: WalkPosition | undefined,
  names: readonly string[],
  limit: number,
): Promise<{ end: WalkPosition; seen: number; stale: number; skipped: number } | undefined> {
  const window = await findStaleWindow(authority.db, after, limit, { otherThan: authority.tzVersion, names });
  if (window === undefined) return undefined;
  const { end, seen, stale } = window;
  const locked = stale.length === 0 ? 0 : await replanSchedules(authority, stale);
  return { end, seen, stale: stale.length, skipped: stale.length - locked };
}

/** Plans these schedules anew where they need it; answers how many could be locked. */
async function replanSchedules(authority: Authority, scheduleIds: readonly Uuid[]): Promise<number> {
  const done = await authority.transact("replan", async (tx) => {
    const cursors = await lockCursorsSkipping(tx, scheduleIds);
    return planAnew(authority, tx, cursors);
  });
  const earliest = Math.min(...done.map((cursor) => cursor.next_due_at ?? Number.POSITIVE_INFINITY));
  // One may be due earlier than any scanner knows.
  if (earliest < Number.POSITIVE_INFINITY) authority.signals.scheduleMoved(earliest as Instant);
  return done.length;
}

export async function finishWalk(authority: Authority, version: string): Promise<void> {
  await finishReplanning(authority.db, version);
}

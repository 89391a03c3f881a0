import type { Authority } from "../../authority/authority.ts";
import { cleanObjects, findExpiredResults, findOrphanObjects } from "../../authority/objects/clean-objects.ts";
import {
  type Deletion,
  findGoingObjects,
  type GoingObject,
  settleDeletions,
} from "../../authority/objects/settle-deletions.ts";
import { isRecordedServer } from "../../authority/server.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Pass } from "../../kernel/loop.ts";
import type { ObjectStore } from "../../objects/port.ts";
import { inHalves } from "../in-halves.ts";
import { type Deleter, deleteAll } from "./deleter.ts";

const BATCH = 300;
const EVERY_MS = 10_000;
const IDLE_MS = 60_000;

/**
 * From the registry to the store: objects whose attempts can publish them no more, and results that were kept long
 * enough, are marked; what is marked is deleted from the store, after the commit. What the store refuses is tried
 * again, less and less often, and stops nothing else. A copy that nobody has recovered cleans nothing: its original's
 * results are in the same store.
 */
export function createObjectCleaner(options: {
  authority: Authority;
  objects: Pick<ObjectStore, "remove">;
  /** How long results are kept. */
  keptMs: number;
}): Pass {
  const { authority, objects, keptMs } = options;
  const { log, metrics } = authority;

  async function mark(found: readonly Uuid[]): Promise<number> {
    let marked = 0;
    await inHalves(
      found,
      async (batch) => {
        marked += (await cleanObjects(authority, batch, keptMs)).length;
      },
      (object, err) => log.error({ object, err }, "an object cannot be marked for deletion"),
    );
    return marked;
  }

  const remove: Deleter<GoingObject> = async ({ uri }) => objects.remove(uri);

  async function pass(signal: AbortSignal) {
    if (!(await isRecordedServer(authority.db))) return { did: 0, more: false };
    const orphans = await findOrphanObjects(authority, BATCH);
    const expired = await findExpiredResults(authority, BATCH, keptMs);
    const marked = (await mark(orphans)) + (await mark(expired));

    const going = await findGoingObjects(authority, BATCH);
    const deletable = going.filter((one) => one.todo === "delete");
    const { deleted, failed } = await deleteAll(deletable, remove, { log, metrics, signal });
    for (const { why, size } of deleted) {
      metrics.objectsDeleted.inc({ why });
      metrics.objectBytesDeleted.inc(why === "again" ? 0 : size);
    }
    const settled: Deletion[] = [
      ...going.filter((one) => one.todo === "forget").map(({ id }) => ({ id, outcome: "forget" as const })),
      ...deleted.map(({ id }) => ({ id, outcome: "removed" as const })),
      ...failed.map(({ id }) => ({ id, outcome: "failed" as const })),
    ];
    if (settled.length > 0) await settleDeletions(authority, settled);

    const isFull = [orphans, expired, going].some((found) => found.length === BATCH);
    const did = marked + settled.length - failed.length;
    return { did, more: isFull && did > 0 };
  }

  return { name: "object-cleaner", everyMs: EVERY_MS, idleMs: IDLE_MS, pass };
}

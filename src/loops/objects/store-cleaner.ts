import type { Authority } from "../../authority/authority.ts";
import { findRegistered } from "../../authority/objects/settle-deletions.ts";
import { isRecordedServer } from "../../authority/server.ts";
import type { Clock, Instant } from "../../kernel/clock.ts";
import type { Pass } from "../../kernel/loop.ts";
import type { ListedObject, ObjectStore } from "../../objects/port.ts";
import { deleteAll } from "./deleter.ts";

const DAY_MS = 86_400_000;
/** Between two pages of the store: a round of ten million objects takes some hours and disturbs nobody. */
const EVERY_MS = 1_000;
const IDLE_MS = 3_600_000;

/**
 * From the store to the registry, once a day, a page at a time: uploads that broke off, and objects that no row of the
 * registry names. No attempt lasts longer than a day, so what is older has no writer. A row is written before its upload
 * and outlives it, so such objects are rare: what a restore of the database forgot, or an upload that came after the
 * last deletion of its key.
 *
 * Only objects of runs that this database knows are deleted. Others may belong to another installation that was given
 * the same place, or the wrong database may be behind us: they are counted and left alone. A copy that nobody has
 * recovered deletes nothing: it does not know which rows its original has written since.
 *
 * Several sweepers may clean at once; each remembers its own place, and a new one begins a round of its own.
 */
export function createStoreCleaner(deps: {
  authority: Authority;
  objects: Pick<ObjectStore, "list" | "remove" | "removeAbandoned">;
  clock: Pick<Clock, "now">;
}): Pass {
  const { authority, objects, clock } = deps;
  const { log, metrics } = authority;
  let roundStartedAt: Instant | undefined;
  let restUntil = 0;
  let place: string | undefined;
  let unknown = 0;

  async function begin(nowAt: Instant): Promise<number> {
    const did = await objects.removeAbandoned(nowAt - DAY_MS);
    metrics.objectsDeleted.inc({ why: "broken-upload" }, did);
    if (did > 0) log.info({ did }, "uploads that broke off were cleared");
    roundStartedAt = nowAt;
    unknown = 0;
    return did;
  }

  function rest(): void {
    metrics.objectsUnknown.set(unknown);
    if (unknown > 0) log.warn({ unknown }, "the object store has objects of runs that this database does not know");
    restUntil = roundStartedAt! + DAY_MS;
    roundStartedAt = undefined;
    place = undefined;
  }

  async function findStrays(listed: readonly ListedObject[], beforeAt: Instant): Promise<ListedObject[]> {
    const old = listed.filter((one) => one.storedAt < beforeAt);
    if (old.length === 0) return [];
    const found = await findRegistered(
      authority,
      old.map((one) => one.parts),
    );
    const nameless = old.filter((_, i) => !found[i]!.isNamed);
    const strays = old.filter((_, i) => !found[i]!.isNamed && found[i]!.runIsKnown);
    unknown += nameless.length - strays.length;
    return strays;
  }

  return {
    name: "store-cleaner",
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    async pass(signal) {
      const nowAt = clock.now();
      if (nowAt < restUntil) return { did: 0, more: false };
      if (!(await isRecordedServer(authority.db))) return { did: 0, more: false };
      let did = roundStartedAt === undefined ? await begin(nowAt) : 0;
      const page = await objects.list(place);
      const strays = await findStrays(page.objects, nowAt - DAY_MS);
      const { deleted } = await deleteAll(strays, ({ uri }) => objects.remove(uri), { log, metrics, signal });
      metrics.objectsDeleted.inc({ why: "stray" }, deleted.length);
      if (deleted.length > 0) log.warn({ deleted: deleted.length }, "objects that no row names were deleted");
      did += deleted.length;
      place = page.next;
      if (place === undefined) rest();
      // A page was looked at: the next one soon.
      return { did: place === undefined ? did : did + 1, more: false };
    },
  };
}

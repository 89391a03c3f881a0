import type { Authority } from "../authority/authority.ts";
import { findChangedNames, findUnwalked, finishWalk, replanWindow } from "../authority/timezones/replan-walk.ts";
import type { Pass } from "../kernel/loop.ts";

/** Schedules looked at in one pass. */
const WINDOW = 2_000;
const EVERY_MS = 50;
const IDLE_MS = 15_000;
/** By then every process has noticed an adoption and ended the transactions that went by the version before. */
const NOTICED_MS = 60_000;

type Walk = {
  version: string;
  names: readonly string[];
  startedAt: number;
  skipped: number;
  after?: { dueAt: number; id: string };
};

/**
 * After an adoption, plans anew what changed zones touch, the earliest due first: a true instant may be earlier than the
 * one a schedule waits for. One walk over all that is due finds everything; as long as processes might not have noticed
 * the adoption when it began, it is followed by another. Several processes may walk at once, and one that ended in the
 * middle leaves nothing behind.
 */
export function createReplanner(options: { authority: Authority }): Pass {
  const { authority } = options;
  const { clock, metrics, log } = authority;
  let walk: Walk | undefined;
  const firstSeen = new Map<string, number>();

  async function begin(version: string): Promise<Walk> {
    if (!firstSeen.has(version)) firstSeen.set(version, clock.monotonic());
    return { version, names: await findChangedNames(authority), startedAt: clock.monotonic(), skipped: 0 };
  }

  async function end(ended: Walk): Promise<void> {
    walk = undefined;
    if (ended.skipped > 0 || ended.startedAt - firstSeen.get(ended.version)! < NOTICED_MS) return;
    await finishWalk(authority, ended.version);
    firstSeen.clear();
    log.info({ tzVersion: ended.version }, "every schedule has been looked at under the adopted tz database");
  }

  return {
    name: "replanner",
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    async pass() {
      const version = await findUnwalked(authority);
      // Until this process goes by the adopted version itself, it has nothing to plan by.
      if (version === undefined || version !== authority.tzVersion) return { did: 0, more: false };
      if (walk?.version !== version) walk = await begin(version);
      const window = await replanWindow(authority, walk.after, walk.names, WINDOW);
      if (window === undefined) {
        await end(walk);
        return { did: 0, more: false };
      }
      walk.after = window.end;
      walk.skipped += window.skipped;
      metrics.schedulesReplanned.inc(window.stale - window.skipped);
      return { did: window.stale, more: true };
    },
  };
}

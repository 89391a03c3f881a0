import type { Authority } from "../authority/authority.ts";
import { hasWaitingRows, publishOutbox } from "../authority/dispatch/publish.ts";
import type { Pass } from "../kernel/loop.ts";
import type { PublishMarked } from "./publish-marked.ts";
import type { Windows } from "./windows.ts";

/** How soon to look again while work waits for room: claims make room all the time. */
const ROOM_POLL_MS = 20;

/**
 * Feeds Redis from the outbox: only what can start, tenants in turn. While Redis is away nothing is marked, and workers
 * take their work straight from the outbox.
 */
export function createRelay(options: {
  authority: Authority;
  redis: { available(): boolean };
  windows: Windows;
  publishMarked: PublishMarked;
}): Pass {
  const { authority, redis, windows, publishMarked } = options;
  /** The last pass found nothing at all: one look is cheaper than a transaction that finds nothing again. */
  let quiet = false;
  return {
    name: "relay",
    everyMs: 50,
    idleMs: 1_000,
    async pass() {
      if (!redis.available()) return { did: 0, more: false };
      if (quiet && !(await hasWaitingRows(authority))) return { did: 0, more: false };
      await windows.refresh();
      const publication = await publishOutbox(authority, windows.slots);
      quiet = publication.held === 0 && publication.rows.length === 0 && publication.nextAt === null;
      const did = await publishMarked(publication.rows, publication.epoch);
      const processNow = authority.clock.now();
      if (publication.held > 0 || publication.rows.length > 0)
        return { did, more: false, nextAt: processNow + ROOM_POLL_MS };
      if (publication.nextAt === null) return { did, more: false };
      return { did, more: false, nextAt: processNow + (publication.nextAt - publication.nowAt) };
    },
  };
}

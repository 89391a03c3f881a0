import type { Authority } from "../authority/authority.ts";
import { hasPublishedRows, hasWaitingRows, publishOutbox } from "../authority/dispatch/publish.ts";
import type { Pass } from "../kernel/loop.ts";
import type { PublishMarked } from "./publish-marked.ts";
import type { Windows } from "./windows.ts";

/**
 * How soon to look again while work waits for room: claims make room all the time. Twice as late after each look that
 * found none, because a tenant parked at its limit may wait for hours; whoever frees a slot wakes the relay.
 */
const ROOM_POLL_MS = 20;
const LONGEST_ROOM_POLL_MS = 500;
/** Timers end a little early now and then. */
const TIMER_SLACK_MS = 3;

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
  let roomPollMs = 0;
  let askedForAt = Number.NEGATIVE_INFINITY;

  return {
    name: "relay",
    everyMs: 50,
    idleMs: 1_000,
    async pass() {
      if (!redis.available()) return { did: 0, more: false };
      // Before the time it asked for: it was woken by news, and there may be more of it.
      const woken = authority.clock.now() < askedForAt - TIMER_SLACK_MS;
      if (quiet && !(await hasWaitingRows(authority))) {
        // What stands in Redis must hear of a start rate that was changed.
        if (await hasPublishedRows(authority)) await windows.refresh();
        return { did: 0, more: false };
      }
      await windows.refresh();
      const publication = await publishOutbox(authority, windows.slots);
      quiet = publication.held === 0 && publication.rows.length === 0 && publication.nextAt === null;
      await authority.faults.reach("relay:committed");
      const did = await publishMarked(publication.rows, publication.epoch);
      const processNow = authority.clock.now();
      const dueAt = publication.nextAt === null ? undefined : processNow + (publication.nextAt - publication.nowAt);
      const moved = publication.rows.length > 0;
      if (publication.held === 0 && !moved) roomPollMs = 0;
      else if (moved || woken) roomPollMs = ROOM_POLL_MS;
      else roomPollMs = Math.min(LONGEST_ROOM_POLL_MS, Math.max(ROOM_POLL_MS, 2 * roomPollMs));
      const pollAt = roomPollMs === 0 ? undefined : processNow + roomPollMs;
      askedForAt = Math.min(pollAt ?? Number.POSITIVE_INFINITY, dueAt ?? Number.POSITIVE_INFINITY);
      return askedForAt === Number.POSITIVE_INFINITY ? { did, more: false } : { did, more: false, nextAt: askedForAt };
    },
  };
}

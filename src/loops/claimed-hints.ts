import type { Authority } from "../authority/authority.ts";
import {
  BEFORE_ALL_LANES,
  findStalePublications,
  type LaneAfter,
  readLanesAfter,
} from "../authority/dispatch/published.ts";
import type { Inspector } from "../hints/inspector.ts";
import { parseHintJobId } from "../hints/names.ts";
import type { Pass } from "../kernel/loop.ts";

const LANES_PER_PASS = 200;
const MOST_PER_LANE = 100;
/** An acknowledgement may be on its way, or kept by a worker until Redis answers it. */
const LEFT_BEHIND_MS = 60_000;

/**
 * Ends hints that were fetched and whose rows are gone: their worker died between its claim and the acknowledgement.
 * Nothing waits for them, but they would stand in Redis for ever. Some lanes a pass, in turn.
 */
export function createClaimedHints(options: {
  authority: Authority;
  inspector: Inspector;
  redis: { available(): boolean };
}): Pass {
  const { authority, inspector, redis } = options;
  let after: LaneAfter = BEFORE_ALL_LANES;
  return {
    name: "claimed-hints",
    everyMs: 30_000,
    idleMs: 120_000,
    async pass() {
      if (!redis.available()) return { did: 0, more: false };
      const lanes = await readLanesAfter(authority, after, LANES_PER_PASS);
      after = lanes.length < LANES_PER_PASS ? BEFORE_ALL_LANES : lanes.at(-1)!;
      const fetched = (
        await Promise.all(lanes.map((lane) => inspector.fetched(lane.tenantId, lane.class, MOST_PER_LANE)))
      ).flat();
      const named = fetched.flatMap((hint) => {
        const identity = parseHintJobId(hint.hintId);
        return identity === undefined ? [] : [{ hint, ...identity }];
      });
      const stale = new Set(await findStalePublications(authority, named));
      const left = named.filter((one) => stale.has(one)).map((one) => one.hint);
      const sightings = await inspector.look(left);
      const before = authority.clock.now() - LEFT_BEHIND_MS;
      const dead = left.filter((_, i) => {
        const sighting = sightings[i]!;
        return sighting.state === "fetched" && sighting.fetchedAt < before;
      });
      await inspector.retire(dead, "claimed by a worker that ended before it could say so");
      return { did: dead.length, more: lanes.length === LANES_PER_PASS };
    },
  };
}

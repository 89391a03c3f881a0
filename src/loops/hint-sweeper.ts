import type { Authority } from "../authority/authority.ts";
import { FROM_THE_START, type PublishedAfter, readEpoch, readPublished } from "../authority/dispatch/published.ts";
import { unpublish } from "../authority/dispatch/unpublish.ts";
import type { HintSighting, Inspector } from "../hints/inspector.ts";
import { hintJobId } from "../hints/names.ts";
import type { Pass } from "../kernel/loop.ts";

const BATCH = 2_000;
/** Younger rows may still be on their way to Redis. */
const SETTLED_AFTER_MS = 3_000;
/** A hint fetched so long ago and never claimed was in a worker that died. */
const FETCHED_TOO_LONG_MS = 5_000;
/**
 * When a hint was fetched is told by its worker's clock, and that of a dead one may be hours ahead. A fetch from the
 * future is believed only so long after the row was published, by the database's clock.
 */
const PUBLISHED_LONG_AGO_MS = 60_000;

export type RedisEpochReader = {
  available(): boolean;
  /** The word under which Redis remembers us; a new one means that every hint is gone. */
  establish(): Promise<{ epoch: string; isNew: boolean }>;
};

/**
 * Finds published rows whose hints Redis lost, by hint id, and unpublishes them: the relay publishes them again. A
 * lost epoch key (FLUSHALL, failover to an empty replica) unpublishes everything at once; so does a Redis that stays
 * away, because then workers take their work from the outbox.
 */
export function createHintSweeper(options: {
  authority: Authority;
  inspector: Inspector;
  redis: RedisEpochReader;
}): Pass {
  const { authority, inspector, redis } = options;
  const { shard } = authority.settings;
  let after: PublishedAfter = FROM_THE_START;
  let redisEpoch: string | undefined;

  async function unpublishAll(): Promise<number> {
    let count = 0;
    for (;;) {
      const rows = await readPublished(authority, 0, FROM_THE_START, BATCH);
      const taken = await unpublish(
        authority,
        rows.map((row) => ({ rowId: row.id, publishNo: row.publish_no })),
      );
      count += taken;
      if (taken === 0) break;
    }
    authority.metrics.hintsLost.inc(count);
    return count;
  }

  return {
    name: "hint-sweeper",
    everyMs: 1_000,
    idleMs: 2_000,
    async pass() {
      if (!redis.available()) return { did: await unpublishAll(), more: false };
      const seen = await redis.establish();
      if (seen.isNew || (redisEpoch !== undefined && redisEpoch !== seen.epoch)) {
        const did = await unpublishAll();
        // A Redis that is new to this process may be new altogether.
        const level = redisEpoch === undefined ? "info" : "warn";
        if (did > 0) authority.log[level]({ did }, "Redis has lost its hints: everything is published again");
        redisEpoch = seen.epoch;
        return { did, more: false };
      }
      redisEpoch = seen.epoch;

      const rows = await readPublished(authority, SETTLED_AFTER_MS, after, BATCH);
      if (rows.length === 0) {
        after = FROM_THE_START;
        return { did: 0, more: false };
      }
      const epoch = await readEpoch(authority);
      const hints = rows.map((row) => ({
        hintId: hintJobId({ shard, epoch, rowId: row.id, publishNo: row.publish_no }),
        tenantId: row.tenant_id,
        class: row.class,
      }));
      const sightings = await inspector.look(hints);
      const nowAt = authority.clock.now();
      const isLostAt = (i: number) => isLost(sightings[i]!, nowAt, rows[i]!.now - rows[i]!.published_at);
      const lost = rows.filter((_, i) => isLostAt(i));
      await inspector.retire(hints.filter((_, i) => sightings[i]!.state === "fetched" && isLostAt(i)));
      const did = await unpublish(
        authority,
        lost.map((row) => ({ rowId: row.id, publishNo: row.publish_no })),
      );
      authority.metrics.hintsLost.inc(did);
      const last = rows.at(-1)!;
      after = rows.length < BATCH ? FROM_THE_START : { publishedAt: last.published_at, id: last.id };
      return { did, more: rows.length === BATCH };
    },
  };
}

function isLost(sighting: HintSighting, nowAt: number, publishedForMs: number): boolean {
  if (sighting.state !== "fetched") return sighting.state !== "waiting";
  if (sighting.fetchedAt > nowAt) return publishedForMs > PUBLISHED_LONG_AGO_MS;
  return nowAt - sighting.fetchedAt > FETCHED_TOO_LONG_MS;
}

import { expireLeases } from "../authority/attempts/expire.ts";
import { findLapsedLeases, readWatch } from "../authority/attempts/watch.ts";
import type { Authority } from "../authority/authority.ts";
import { findLapsedSends } from "../authority/effects/due.ts";
import { lapseEffects } from "../authority/effects/lapse.ts";
import { type Amnesty, observe } from "../domain/amnesty.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Pass } from "../kernel/loop.ts";
import { inHalves } from "./in-halves.ts";

const BATCH = 300;

/**
 * Ends attempts whose leases ran out, of runs and of effects, but not while nobody could have renewed or reported them
 * (amnesty).
 */
export function createLeaseSweeper(options: { authority: Authority }): Pass {
  const { authority } = options;
  const { lease } = authority.settings;
  const everyMs = Math.min(2_000, lease.heartbeatMs / 2);
  let amnesty: Amnesty | undefined;
  /** Leases that ended before this lapsed in a gap; their expiry is not held against their runs. */
  let forgivenUntil = 0;
  return {
    name: "lease-sweeper",
    everyMs,
    idleMs: everyMs,
    async pass() {
      const watch = await readWatch(authority);
      const before = amnesty;
      amnesty = observe(before, watch, lease);
      if (before !== undefined && amnesty.until !== before.until) {
        authority.log.warn({ untilAt: amnesty.until }, "the authority was away: no lease is expired for one term");
      }
      if (watch.databaseAt < amnesty.until) {
        forgivenUntil = amnesty.until;
        return { did: 0, more: false };
      }
      const lapsed = await findLapsedLeases(authority, BATCH);
      let did = 0;
      await inHalves(
        lapsed,
        async (batch) => {
          did += await expireLeases(authority, batch, forgivenUntil);
        },
        (run, err) => authority.log.error({ run, err, reason: messageOf(err) }, "a lapsed lease cannot be ended"),
      );
      const unheard = await findLapsedSends(authority, BATCH);
      await inHalves(
        unheard,
        async (batch) => {
          did += await lapseEffects(authority, batch);
        },
        (effect, err) => authority.log.error({ effect, err, reason: messageOf(err) }, "a lapsed send cannot be ended"),
      );
      return { did, more: did > 0 && Math.max(lapsed.length, unheard.length) === BATCH };
    },
  };
}

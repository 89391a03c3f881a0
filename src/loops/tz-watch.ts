import type { Authority } from "../authority/authority.ts";
import { followAdoption } from "../authority/timezones/pin-zones.ts";
import type { Pass } from "../kernel/loop.ts";

/** An adoption is noticed within this time; one row is read for it. */
const EVERY_MS = 5_000;

/** Notices that another version of the tz database has been adopted, and has this process go by it. */
export function createTzWatch(options: { authority: Authority }): Pass {
  const { authority } = options;
  const { tzInfo } = authority.metrics;
  let shown: string | undefined;
  return {
    name: "tz-watch",
    everyMs: EVERY_MS,
    idleMs: EVERY_MS,
    async pass() {
      const changed = await followAdoption(authority, authority.db);
      if (shown !== authority.tzVersion) {
        shown = authority.tzVersion;
        tzInfo.reset();
        tzInfo.set({ version: shown }, 1);
      }
      return { did: changed ? 1 : 0, more: false };
    },
  };
}

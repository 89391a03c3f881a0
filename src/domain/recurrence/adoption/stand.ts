/** Where a schedule stands, from what its cursor remembers and the data it was planned by. */
import { DAY_SECONDS, dayOf } from "../civil.ts";
import { highestWall } from "../zone.ts";
import type { ZoneSource } from "../zone-source.ts";
import type { Stand } from "./continuation.ts";

const LOCAL = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.\d+)?[+-][\d:]+\[(.+)\]$/;

/** Reads what `toLocal` wrote: the zone's name, and the whole wall second. Undefined: it is something else. */
export function readLocal(text: string): { zone: string; wall: number } | undefined {
  const parts = LOCAL.exec(text);
  if (parts === null) return undefined;
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map(Number) as Six;
  return { zone: parts[7]!, wall: dayOf(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second };
}

type Six = [number, number, number, number, number, number];

/**
 * `local` is the local time that is remembered of `at` (`toLocal`'s text; null: none is), `before` the data the
 * schedule was planned by (undefined: it is not known). What is remembered outlives any number of adoptions.
 */
export function standOf(at: number, local: string | null, before: ZoneSource | undefined): Stand {
  const remembered = local === null ? undefined : readLocal(local);
  return {
    at,
    wallIn(zone) {
      if (remembered?.zone === zone.name) return remembered.wall;
      const old = before?.findZone(zone.name);
      return old === undefined ? undefined : highestWall(old, Math.floor(at / 1000));
    },
  };
}

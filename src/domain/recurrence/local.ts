/** Instants and rules in the words of the people who wait for them. */
import { DateTime } from "luxon";
import { callerError } from "../../kernel/errors.ts";
import { PinnedZone } from "./luxon-zone.ts";
import type { ZoneSource } from "./zone-source.ts";

export { describeRule } from "./describe.ts";

/**
 * The instant `at` (epoch milliseconds) as a wall time of `zone` in RFC 9557: `2026-09-23T09:00:00-04:00[America/New_York]`.
 * Throws a caller's error for an unknown zone.
 */
export function toLocal(zone: string, at: number, zones: ZoneSource): string {
  if (zone !== last.zone || at !== last.at || zones !== last.zones)
    last = { zone, at, zones, text: show(zone, at, zones) };
  return last.text;
}

// A thousand schedules of one zone are due together at nine: what their clocks show is worked out once.
let last: { zone: string; at: number; zones: ZoneSource | undefined; text: string } = {
  zone: "",
  at: Number.NaN,
  zones: undefined,
  text: "",
};

function show(zone: string, at: number, zones: ZoneSource): string {
  const found = zones.findZone(zone);
  if (found === undefined) {
    throw callerError("unknown-zone", "The time zone database has no zone of this name", {
      zone,
      version: zones.version,
    });
  }
  const local = DateTime.fromMillis(Math.floor(at), { zone: new PinnedZone(found) });
  const text = local.toISO({ suppressMilliseconds: true, includeOffset: false });
  return `${text}${local.zone.formatOffset(at, "short")}[${zone}]`;
}

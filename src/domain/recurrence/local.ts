/** Instants and rules in the words of the people who wait for them. */
import { DateTime } from "luxon";
import { callerError } from "../../kernel/errors.ts";
import { PinnedZone } from "./luxon-zone.ts";
import type { Zone } from "./zone.ts";
import type { ZoneSource } from "./zone-source.ts";

export { describeRule } from "./describe.ts";

/**
 * The instant `at` (epoch milliseconds) as a wall time of `zone` in RFC 9557: `2026-09-23T09:00:00-04:00[America/New_York]`.
 * Throws a caller's error for an unknown zone.
 */
export function toLocal(zone: string, at: number, zones: ZoneSource): string {
  const found = zones.findZone(zone);
  if (found === undefined) {
    throw callerError("unknown-zone", "The time zone database has no zone of this name", {
      zone,
      version: zones.version,
    });
  }
  let shown = lastShown.get(found);
  if (shown?.at !== at) {
    shown = { at, text: show(found, at) };
    lastShown.set(found, shown);
  }
  return shown.text;
}

/** By zone, since those due together at nine are of several: what a clock shows is worked out once for all that read it. */
const lastShown = new WeakMap<Zone, { readonly at: number; readonly text: string }>();

function show(zone: Zone, at: number): string {
  const local = DateTime.fromMillis(Math.floor(at), { zone: new PinnedZone(zone) });
  const text = local.toISO({ suppressMilliseconds: true, includeOffset: false });
  return `${text}${local.zone.formatOffset(at, "short")}[${zone.name}]`;
}

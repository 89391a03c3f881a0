/** Finding a zone by its name, and helping whoever wrote another one. */
import { refuse } from "./fault.ts";
import type { Zone } from "./zone.ts";
import type { ZoneSource } from "./zone-source.ts";

/** The zone of exactly this name. Throws `FaultyRule`. */
export function requireZone(field: string, name: string, zones: ZoneSource): Zone {
  const zone = zones.findZone(name);
  if (zone !== undefined) return zone;
  const suggestion = suggestZone(name, zones);
  return refuse({
    field,
    found: name,
    message: name === "" ? "The zone is empty." : `The time zone database (${zones.version}) has no zone of this name.`,
    allowed: "an IANA name in its exact case, such as America/New_York or UTC",
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

const CLOSE_ENOUGH = 2;

function suggestZone(name: string, zones: ZoneSource): string | undefined {
  if (name.length > 64) return undefined;
  const wanted = name.trim().replace(/ /g, "_").toLowerCase();
  if (wanted === "") return undefined;
  const offset = /^(?:utc|gmt|z)?([+-]?)0?(\d{1,2})?(?::?00)?$/.exec(wanted);
  if (offset !== null) return fixedOffset(offset[1] ?? "", Number(offset[2] ?? 0), zones);
  const exact = zones.names.find((one) => one.toLowerCase() === wanted);
  if (exact !== undefined) return exact;
  const city = zones.names.find((one) => one.toLowerCase().endsWith(`/${wanted}`));
  if (city !== undefined) return city;
  let best: string | undefined;
  let bestDistance = CLOSE_ENOUGH + 1;
  for (const one of zones.names) {
    if (Math.abs(one.length - wanted.length) > CLOSE_ENOUGH || wanted.length < 6) continue;
    const apart = distance(one.toLowerCase(), wanted);
    if (apart < bestDistance) [best, bestDistance] = [one, apart];
  }
  return best;
}

/** IANA writes fixed offsets with the sign turned round: Etc/GMT-5 is five hours ahead of UTC. */
function fixedOffset(sign: string, hours: number, zones: ZoneSource): string | undefined {
  const name = hours === 0 ? "UTC" : `Etc/GMT${sign === "-" ? "+" : "-"}${hours}`;
  return zones.findZone(name) === undefined ? undefined : name;
}

/** Levenshtein's distance: insertions, deletions and replacements between two names. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, k) => k);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, row[j]! + 1, next[j - 1]! + 1));
    }
    row = next;
  }
  return row[b.length]!;
}

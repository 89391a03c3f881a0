/**
 * Zone rules come from pinned bytes, never from the machine: two releases, or two hosts, that hold the same bytes agree on
 * every instant. The bytes are text, one zone a line, so that a release's changes can be read in a diff:
 *
 *   punctual-tz 1 2026f
 *   Europe/Berlin|CET-1CEST,M3.5.0,M10.5.0/3|3208,3600,7200|1.-12ig4q0 2.…    offsets, then index.delta in base 36
 *   =Europe/Belfast|Europe/London                                            another name for the same rules
 */
import { parseTzRule, type Transition } from "./posix-tz.ts";
import { makeZone, type Zone } from "./zone.ts";

/** Where zones are looked up; `version` is the IANA release, such as `2026f`. */
export type ZoneSource = {
  readonly version: string;
  /** Every name a rule may carry, exact in case, in order. */
  readonly names: readonly string[];
  findZone(name: string): Zone | undefined;
  /** A zone's rules as they are packed: equal texts are equal rules. */
  textOf(name: string): string | undefined;
};

export const PACK_HEADER = "punctual-tz 1 ";

/** Opens packed time zone data. Throws when the bytes are something else: a broken file, for an operator to replace. */
export function zoneSourceFromBytes(bytes: Uint8Array): ZoneSource {
  const [header = "", ...lines] = new TextDecoder("utf-8", { fatal: true }).decode(bytes).trimEnd().split("\n");
  const version = header.slice(PACK_HEADER.length);
  if (!header.startsWith(PACK_HEADER) || version === "") {
    throw new Error(`Not packed time zone data: it must begin with "${PACK_HEADER}<version>"`);
  }
  const bodies = new Map<string, string>();
  const targets = new Map<string, string>();
  for (const line of lines) {
    const bar = line.indexOf("|");
    if (line.startsWith("=")) targets.set(line.slice(1, bar), line.slice(bar + 1));
    else bodies.set(line.slice(0, bar), line.slice(bar + 1));
  }
  const opened = new Map<string, Zone>();
  const textOf = (name: string) => bodies.get(targets.get(name) ?? name);
  return {
    version,
    names: [...bodies.keys(), ...targets.keys()].sort(),
    findZone(name) {
      const known = opened.get(name);
      if (known !== undefined) return known;
      const body = textOf(name);
      if (body === undefined) return undefined;
      const zone = openZone(name, body);
      opened.set(name, zone);
      return zone;
    },
    textOf,
  };
}

function openZone(name: string, body: string): Zone {
  const [footer = "", offsetList = "", changes = ""] = body.split("|");
  const offsets = offsetList.split(",").map(Number);
  const transitions: Transition[] = [];
  let at = 0;
  for (const change of changes === "" ? [] : changes.split(" ")) {
    const [index = "", delta = ""] = change.split(".");
    at += Number.parseInt(delta, 36);
    transitions.push({ at, offset: offsets[Number.parseInt(index, 36)]! });
  }
  return makeZone(name, offsets[0]!, transitions, parseTzRule(footer));
}

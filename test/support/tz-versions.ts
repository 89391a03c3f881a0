import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { loadBundledTzData, type TzData } from "../../src/app/tz-data.ts";
import { PACK_HEADER, zoneSourceFromBytes } from "../../src/domain/recurrence/zone-source.ts";
import type { World } from "./world.ts";

/**
 * Other versions of the tz database: the bundled one, with lines of its own in place of some. Without text a zone is
 * removed. test/vectors/zones holds lines of real releases: Vancouver as it was up to 2025c (clocks still go back in
 * winter), Beirut as 2023b had it (summer from 21 April 2023 on).
 */
export function tzVersion(version: string, lines: Readonly<Record<string, string | undefined>> = {}): TzData {
  const [, ...bundled] = new TextDecoder().decode(loadBundledTzData().bytes).trimEnd().split("\n");
  const kept = bundled.filter((line) => !(line.split("|")[0]! in lines));
  const own = Object.entries(lines).flatMap(([name, body]) => (body === undefined ? [] : [`${name}|${body}`]));
  const bytes = new TextEncoder().encode(`${[PACK_HEADER + version, ...own, ...kept].join("\n")}\n`);
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  return { bytes, sha256, zones: zoneSourceFromBytes(bytes) };
}

/** The bundled data, with the zones of an older release where they differ. */
export function olderVersion(version: "2025c" | "2023b"): TzData {
  const text = readFileSync(new URL(`../vectors/zones/${version}.txt`, import.meta.url), "utf8");
  const [, ...lines] = text.trimEnd().split("\n");
  return tzVersion(version, Object.fromEntries(lines.map((line) => split(line))));
}

function split(line: string): [string, string] {
  const bar = line.indexOf("|");
  return [line.slice(0, bar), line.slice(bar + 1)];
}

/** As a candidate for pinning. */
export function candidateOf({ bytes, sha256, zones }: TzData) {
  return { version: zones.version, sha256: Buffer.from(sha256, "hex"), bytes };
}

/** What `punctual calendar adopt` does in the end, seen from a process that has not noticed. */
export async function adoptBehindTheBack(world: World, version: string): Promise<void> {
  await world.admin.query("update tz_data set adopted_at = clock_timestamp(), replanned_at = null where version = $1", [
    version,
  ]);
}

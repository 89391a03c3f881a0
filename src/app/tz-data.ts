/** Reads time zone data from disk: what is bundled with this release, or a zoneinfo directory an operator configured. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { packZones } from "../domain/recurrence/zone-pack.ts";
import { type ZoneSource, zoneSourceFromBytes } from "../domain/recurrence/zone-source.ts";
import { messageOf, operatorError } from "../kernel/errors.ts";

/**
 * `bytes` are what processes must share to agree; `sha256` (hex) tells whether they do. What is read here is a candidate:
 * processes go by the version that is adopted in the database.
 */
export type TzData = { readonly bytes: Uint8Array; readonly sha256: string; readonly zones: ZoneSource };

const BUNDLED = new URL("../domain/recurrence/tzdata/zones.txt", import.meta.url);

/**
 * What this process has to offer: the data of its release, or of the zoneinfo directory an operator named. Operator error
 * `config-invalid` where that is no such directory.
 */
export function loadTzCandidate(zoneinfo: string | undefined): TzData {
  if (zoneinfo === undefined) return loadBundledTzData();
  try {
    return loadZoneinfoDirectory(zoneinfo);
  } catch (error) {
    const sentence = `PUNCTUAL_ZONEINFO: found "${zoneinfo}"; ${messageOf(error)}; allowed: a directory of compiled zones with their tzdata.zi`;
    throw operatorError("config-invalid", sentence, { key: "PUNCTUAL_ZONEINFO" }, error);
  }
}

/** The data of this release. Throws when the file is missing or broken: the installation is damaged. */
export function loadBundledTzData(): TzData {
  return tzDataOf(readFileSync(BUNDLED));
}

/**
 * The data of a zoneinfo directory (such as /usr/share/zoneinfo). Throws when it lacks `tzdata.zi`, which alone says what
 * its version is and which of its files are zones.
 */
export function loadZoneinfoDirectory(directory: string): TzData {
  const index = readFileSync(join(directory, "tzdata.zi"), "utf8");
  const version = /^# version (\S+)/.exec(index)?.[1];
  if (version === undefined)
    throw new Error(`${join(directory, "tzdata.zi")} does not say its version in its first line`);
  const files = new Map<string, Uint8Array>();
  for (const name of zoneNames(index)) files.set(name, readFileSync(join(directory, name)));
  return tzDataOf(packZones(version, files));
}

function tzDataOf(bytes: Uint8Array): TzData {
  return { bytes, sha256: createHash("sha256").update(bytes).digest("hex"), zones: zoneSourceFromBytes(bytes) };
}

/** Zone lines read `Z <name> …`, links `L <target> <name>`. */
function zoneNames(index: string): readonly string[] {
  const names: string[] = [];
  for (const line of index.split("\n")) {
    const [kind, first, second] = line.split(" ");
    if (kind === "Z" && first !== undefined) names.push(first);
    if (kind === "L" && second !== undefined) names.push(second);
  }
  // "Factory" is the database's own word for a clock that nobody has set; it is no place a schedule can mean.
  return names.filter((name) => name !== "Factory");
}

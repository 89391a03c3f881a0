import { openTzVersion } from "../../../authority/timezones/open-data.ts";
import { differenceOf, shadowOf } from "../../../domain/recurrence/adoption/shadow.ts";
import type { ZoneSource } from "../../../domain/recurrence/zone-source.ts";
import { messageOf } from "../../../kernel/errors.ts";
import { findAdopted, listTzVersions } from "../../../store/rows/tz-data.ts";
import type { Config } from "../../config.ts";
import type { Core } from "../../core.ts";
import { loadZoneinfoDirectory } from "../../tz-data.ts";
import { printJson, printLine } from "../print.ts";
import { EXIT, UsageError } from "../usage.ts";
import {
  documentOf,
  type Moved,
  movedByZones,
  nextMonth,
  printMoved,
  type Reading,
  readRules,
  summaryOf,
} from "./compare.ts";
import { readShadows, writeShadows } from "./shadow-file.ts";
import type { ShadowOptions } from "./tz-commands.ts";
import { withDatabase } from "./with-database.ts";

export async function shadow(config: Config, options: ShadowOptions): Promise<number> {
  const ways = [options.to, options.zoneinfo, options.write, options.against].filter((one) => one !== undefined);
  if (ways.length > 1) throw new UsageError("--to, --zoneinfo, --write and --against: one of them at a time");
  return withDatabase(config, async (core) => {
    if (options.write !== undefined) return write(core, options.write, options);
    if (options.against !== undefined) return compareWithFile(core, options.against, options);
    const before = await adoptedZones(core);
    const after = await otherZones(core, options);
    return tell(await movedByZones(core, { before, after }), { before, after }, options);
  });
}

async function write(core: Core, file: string, options: ShadowOptions): Promise<number> {
  const zones = await adoptedZones(core);
  const period = await nextMonth(core);
  const rules = await readRules(core);
  const lines = rules.map((one) => ({ ...one, shadow: shadowOf(one.rule, zones, period.from, period.until) }));
  const written = writeShadows(file, { release: core.version, tzVersion: zones.version, ...period }, lines);
  if (options.json) printJson({ file, rules: written, release: core.version, tzVersion: zones.version });
  else printLine(`${written} rules under ${zones.version}, as release ${core.version} computes them: ${file}`);
  return EXIT.ok;
}

/** The same rules under the same zones, computed by this program. */
async function compareWithFile(core: Core, file: string, options: ShadowOptions): Promise<number> {
  const { head, lines } = readShadows(file);
  const zones = await versionOf(core, "--against", head.tzVersion);
  const moved = lines.flatMap(({ rule, schedules, example, shadow: before }) => {
    const difference = differenceOf(before, shadowOf(rule, zones, head.from, head.until));
    return difference === undefined ? [] : [{ rule, schedules, example, difference }];
  });
  return tell(moved, { before: zones, after: zones }, options);
}

function tell(moved: readonly Moved[], reading: Reading, options: ShadowOptions): number {
  const { before, after } = reading;
  if (options.json) printJson({ before: before.version, after: after.version, moved: documentOf(moved, reading) });
  else {
    printMoved(moved, reading);
    printLine(summaryOf(moved));
  }
  return moved.length === 0 ? EXIT.ok : EXIT.failed;
}

export async function adoptedZones(core: Core): Promise<ZoneSource> {
  const adopted = await findAdopted(core.db);
  if (adopted === undefined) throw new UsageError("no tz database is adopted yet: start the system first");
  return (await openTzVersion(core.db, adopted.version))!;
}

export async function versionOf(core: Core, field: string, version: string): Promise<ZoneSource> {
  const found = await openTzVersion(core.db, version);
  if (found !== undefined) return found;
  if (version === core.tzCandidate.zones.version) return core.tzCandidate.zones;
  const known = new Set((await listTzVersions(core.db)).map((row) => row.version)).add(core.tzCandidate.zones.version);
  throw new UsageError(`${field}: ${version} is not known; allowed: ${[...known].join(", ")}`);
}

async function otherZones(core: Core, { to, zoneinfo }: ShadowOptions): Promise<ZoneSource> {
  if (to !== undefined) return versionOf(core, "--to", to);
  if (zoneinfo === undefined) return core.tzCandidate.zones;
  try {
    return loadZoneinfoDirectory(zoneinfo).zones;
  } catch (error) {
    throw new UsageError(
      `--zoneinfo: found "${zoneinfo}"; ${messageOf(error)}; allowed: a directory of compiled zones with their tzdata.zi`,
    );
  }
}

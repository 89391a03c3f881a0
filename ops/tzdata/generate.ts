/**
 * Writes the bundled time zone data from a zoneinfo directory, which must be a current one:
 *
 *   apt-get update && apt-get install tzdata
 *   node ops/tzdata/generate.ts [/usr/share/zoneinfo]
 */
import { writeFileSync } from "node:fs";
import { loadZoneinfoDirectory } from "../../src/app/tz-data.ts";

const { bytes, sha256, zones } = loadZoneinfoDirectory(process.argv[2] ?? "/usr/share/zoneinfo");
writeFileSync(new URL("../../src/domain/recurrence/tzdata/zones.txt", import.meta.url), bytes);
console.log(`tzdata ${zones.version}: ${zones.names.length} names, ${bytes.length} bytes, sha256 ${sha256}`);

import { createHash } from "node:crypto";
import { type ZoneSource, zoneSourceFromBytes } from "../../domain/recurrence/zone-source.ts";
import { messageOf, operatorError, type PunctualError } from "../../kernel/errors.ts";
import type { Queryable } from "../../store/database.ts";
import { readTzBytes } from "../../store/rows/tz-data.ts";

/**
 * Opens the data of one version from its row; undefined: there is no such row. Operator error `tz-data-corrupt` where
 * the bytes are not those that were written: rules computed from them would be anybody's guess.
 */
export async function openTzVersion(db: Queryable, version: string): Promise<ZoneSource | undefined> {
  const row = await readTzBytes(db, version);
  if (row === undefined) return undefined;
  const found = createHash("sha256").update(row.bytes).digest("hex");
  const expected = Buffer.from(row.sha256).toString("hex");
  if (found !== expected) throw corrupt(version, `they hash to ${found}, and sha256 says ${expected}`);
  try {
    // The row's name counts: two builds of one IANA release are two versions.
    return { ...zoneSourceFromBytes(row.bytes), version };
  } catch (error) {
    throw corrupt(version, messageOf(error));
  }
}

function corrupt(version: string, why: string): PunctualError {
  return operatorError(
    "tz-data-corrupt",
    `The bytes of version ${version} in the table tz_data are not what they should be: ${why}. Restore that row from a ` +
      "backup, or adopt another version: punctual calendar adopt VERSION",
    { version },
  );
}

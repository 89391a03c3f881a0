import type { Instant } from "../../kernel/clock.ts";
import { type Queryable, sql } from "../database.ts";

/** Versions of the tz database, bytes and all. The adopted one is the one adopted last; the others are candidates. */

export type TzVersionRow = {
  version: string;
  sha256: Uint8Array;
  adopted_at: Instant | null;
  /** When every schedule planned by another version had been looked at; null: not yet. */
  replanned_at: Instant | null;
};

const COLUMNS = "version, sha256, adopted_at, replanned_at";

const FIND_ADOPTED = sql(
  "tz_find_adopted",
  `select ${COLUMNS} from tz_data where adopted_at is not null order by adopted_at desc limit 1`,
);
const LIST = sql("tz_list", `select ${COLUMNS}, sha256(bytes) = sha256 as "isWhole" from tz_data order by version`);
const READ_BYTES = sql("tz_read_bytes", "select version, sha256, bytes from tz_data where version = $1");
const INSERT = sql(
  "tz_insert",
  "insert into tz_data (version, sha256, bytes) values ($1, $2, $3) on conflict do nothing returning version",
);
const LOCK = sql("tz_lock", "lock table tz_data in share row exclusive mode");
// Later than every adoption before, whatever the clock does.
const ADOPT = sql(
  "tz_adopt",
  `update tz_data
      set replanned_at = null,
          adopted_at = greatest(clock_timestamp(), (select max(adopted_at) from tz_data) + interval '1 microsecond')
    where version = $1`,
);
const FINISH = sql(
  "tz_finish_replanning",
  "update tz_data set replanned_at = clock_timestamp() where version = $1 and adopted_at is not null",
);

export async function findAdopted(db: Queryable): Promise<TzVersionRow | undefined> {
  return (await db.query<TzVersionRow>(FIND_ADOPTED))[0];
}

/** `isWhole`: the bytes are those that were written. */
export function listTzVersions(db: Queryable): Promise<(TzVersionRow & { isWhole: boolean })[]> {
  return db.query<TzVersionRow & { isWhole: boolean }>(LIST);
}

export async function readTzBytes(
  db: Queryable,
  version: string,
): Promise<{ version: string; sha256: Uint8Array; bytes: Uint8Array } | undefined> {
  return (await db.query<{ version: string; sha256: Uint8Array; bytes: Uint8Array }>(READ_BYTES, [version]))[0];
}

/** False where a version of this name is there already. */
export async function insertTzVersion(
  db: Queryable,
  row: { version: string; sha256: Uint8Array; bytes: Uint8Array },
): Promise<boolean> {
  return (await db.query(INSERT, [row.version, row.sha256, row.bytes])).length === 1;
}

/** Adoptions come one after the other. */
export async function lockTzVersions(tx: Queryable): Promise<void> {
  await tx.query(LOCK);
}

export async function adoptTzVersion(tx: Queryable, version: string): Promise<void> {
  await tx.query(ADOPT, [version]);
}

export async function finishReplanning(db: Queryable, version: string): Promise<void> {
  await db.query(FINISH, [version]);
}

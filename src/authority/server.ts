import type { Instant } from "../kernel/clock.ts";
import { operatorError, PunctualError } from "../kernel/errors.ts";
import { type Queryable, sql } from "../store/database.ts";

/**
 * The server's own identity beside the recorded one. After a restore, or a promotion that may have lost commits, the
 * two differ, and no ownership is given until an operator has run `punctual recover`. What cannot be seen from within
 * is a copy of the data directory put back without a recovery of its log: it says that it is what it was.
 */
const READ = sql(
  "server_read",
  `select clock_timestamp() as now, e.epoch,
          e.system_identifier = (select system_identifier from pg_control_system()) as same_system,
          e.timeline = ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as same_timeline,
          coalesce(e.database_oid = (select oid from pg_database where datname = current_database()), true) as same_database,
          array(select nextval('fence_seq') from generate_series(1, $1::int)) as fences
     from authority_epoch e`,
);

const READ_EPOCH = sql("server_read_epoch", "select epoch from authority_epoch");

/** The epoch alone, whoever the server is: for what must go on while claims stop. */
export async function readRaisedEpoch(tx: Queryable): Promise<number> {
  return (await tx.query<{ epoch: number }>(READ_EPOCH))[0]?.epoch ?? 0;
}

type Identity = { same_system: boolean; same_timeline: boolean; same_database: boolean };

export type Server = { now: Instant; epoch: number; fences: bigint[] };

/** Authority time, the epoch, and `fences` numbers of the fence sequence; one statement, after the locks. */
export async function readServer(tx: Queryable, fences: number): Promise<Server> {
  const rows = await tx.query<Server & Identity>(READ, [fences]);
  const row = rows[0];
  if (row === undefined)
    throw operatorError("not-migrated", "the database has no authority epoch: run `punctual migrate`");
  if (!row.same_system || !row.same_timeline || !row.same_database) {
    throw operatorError(
      "recovery-needed",
      "this database is a restored or promoted copy that may have lost commits: run `punctual recover` before work goes on",
      { sameSystem: row.same_system, sameTimeline: row.same_timeline, sameDatabase: row.same_database },
    );
  }
  return row;
}

/**
 * False on a copy that nobody has recovered. Whatever lies outside the database may be shared with its original, which
 * goes by commits that the copy has not seen: the copy deletes, sends and gives out nothing there.
 */
export async function isRecordedServer(db: Queryable): Promise<boolean> {
  try {
    await readServer(db, 0);
    return true;
  } catch (error) {
    if (error instanceof PunctualError && error.code === "recovery-needed") return false;
    throw error;
  }
}

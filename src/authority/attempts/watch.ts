import type { Watch } from "../../domain/amnesty.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { findLapsed } from "../../store/rows/leases.ts";
import type { Authority } from "../authority.ts";

const READ = sql(
  "watch_read",
  `select clock_timestamp() as now, pg_postmaster_start_time() as started,
          ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int as timeline`,
);

/** What tells a lease sweeper whether the authority was away since its last pass. */
export async function readWatch(authority: Authority): Promise<Watch> {
  const row = (await authority.db.query<{ now: Instant; started: Instant; timeline: number }>(READ))[0]!;
  const monotonicMs = authority.clock.monotonic();
  return { databaseAt: row.now, monotonicMs, serverStartedAt: row.started, timeline: row.timeline };
}

/** Runs whose leases seem over; expireLeases decides under their locks. */
export function findLapsedLeases(authority: Authority, limit: number): Promise<Uuid[]> {
  return findLapsed(authority.db, limit);
}

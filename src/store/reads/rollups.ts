import type { ResourceClass } from "../../domain/definition.ts";
import { type Counts, LATENESS_BUCKETS, RESOLUTIONS, type Resolution } from "../../domain/rollup.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Database, sql, sqlOfNoTenant } from "../database.ts";
import { instantText } from "../values.ts";
import { readBounded } from "./bounded.ts";

export type RollupRow = Counts & { class: ResourceClass; at: Instant };

const SUMS = ["started", "succeeded", "failed", "canceled", "skipped", "retried"];
const LATENESS = Array.from({ length: LATENESS_BUCKETS }, (_, i) => `sum(lateness[${i + 1}])`).join();

const READ = sql(
  "rollups_read",
  `select class, date_bin($6 * interval '1 ms', at, 'epoch') as at,
          ${SUMS.map((one) => `sum(${one})::float8 as ${one}`).join(", ")}, array[${LATENESS}]::float8[] as lateness
     from rollup
    where tenant_id = $1 and minutes = $2 and class = any($3::text[])
      and at >= $4::timestamptz and at < $5::timestamptz
    group by 2, 1 order by 2, 1`,
);

export type RollupPeriod = {
  classes: readonly ResourceClass[];
  resolution: Resolution;
  /** Whole multiples of the resolution. */
  fromAt: Instant;
  toAt: Instant;
};

// Up to where deltas are folded, whosever they are.
const OLDEST_DELTA = sqlOfNoTenant(
  "rollups_oldest_delta",
  "select (select at from rollup_delta order by at limit 1) - interval '1 us' as at",
);
const ASKING = { what: "statistics", askFor: "less time with from and to, or by the hour" };

/**
 * A tenant's counts, oldest first; where nothing happened there is no row. Everything that happened up to `asOf` is in
 * them; `settledAt`, the watermark, was read before.
 */
export async function readRollups(
  db: Pick<Database, "queryWithin">,
  tenantId: Uuid,
  period: RollupPeriod,
  settledAt: Instant,
): Promise<{ rows: RollupRow[]; asOf: Instant }> {
  const { classes, resolution, fromAt, toAt } = period;
  const { ms, keptMinutes } = RESOLUTIONS[resolution];
  // First what is not folded yet: what is folded in between is in the rows already.
  const [oldest] = await readBounded<{ at: Instant | null }>(db, OLDEST_DELTA, [], ASKING);
  const values = [tenantId, keptMinutes, classes, instantText(fromAt), instantText(toAt), ms];
  const rows = await readBounded<RollupRow>(db, READ, values, ASKING);
  return { rows, asOf: Math.min(settledAt, oldest?.at ?? settledAt) };
}

import { z } from "zod";
import { CLASSES } from "../../domain/definition.ts";
import { addCounts, type Counts, LATENESS_BOUNDS_MS, latenessQuantile, type Resolution } from "../../domain/rollup.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { RollupPeriod, RollupRow } from "../../store/reads/rollups.ts";
import { STATS } from "../examples.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant } from "./instant.ts";

const quantile = z
  .int()
  .nullable()
  .describe("Upper bound of the bucket it lies in; null: nothing started, or it is past the last bound");

const counts = z.strictObject({
  started: z.int().describe("Runs that started for the first time"),
  succeeded: z.int(),
  failed: z.int().describe("For good, after their retries"),
  canceled: z.int(),
  skipped: z.int().describe("As runs of their own; ranges of skips are in the ledger"),
  retried: z.int().describe("Attempts after which the run went on: failed, expired or released"),
  heldBack: z
    .int()
    .describe("Of `started`: held by something of their own (overlap, a limit, a replay), so in no bucket"),
  lateness: z
    .strictObject({
      counts: z.array(z.int()).describe("One for each of `latenessBoundsMs`, and one for what is past the last"),
      p50Ms: quantile,
      p99Ms: quantile,
    })
    .describe("Due (or admitted, if later) to first start"),
});

export const statsSchema = z
  .strictObject({
    from: shownInstant.describe("Where the first bucket begins"),
    to: shownInstant.describe("Where the last one ends"),
    resolution: z.enum(["minute", "hour", "day"]),
    latenessBoundsMs: z.array(z.int()).describe("A bucket of lateness holds what is less than its bound"),
    items: z
      .array(counts.extend({ at: shownInstant.describe("Where the bucket begins"), class: z.enum(CLASSES) }))
      .describe("Oldest first; where nothing happened there is none"),
    total: counts.describe("Of all items"),
    source: z.literal("rollups"),
    asOf: shownInstant.describe("What happened up to here is counted; later buckets may grow"),
  })
  .meta({ id: "Stats", example: STATS });

export function presentStats(
  stats: RollupPeriod & { rows: readonly RollupRow[]; asOf: Instant },
): z.output<typeof statsSchema> {
  return {
    from: showInstant(stats.fromAt),
    to: showInstant(stats.toAt),
    resolution: stats.resolution satisfies Resolution,
    latenessBoundsMs: [...LATENESS_BOUNDS_MS],
    items: stats.rows.map((row) => ({ at: showInstant(row.at), class: row.class, ...presentCounts(row) })),
    total: presentCounts(addCounts(stats.rows)),
    source: "rollups",
    asOf: showInstant(stats.asOf),
  };
}

function presentCounts({ started, succeeded, failed, canceled, skipped, retried, lateness }: Counts) {
  const quantileMs = (share: number) => {
    const ms = latenessQuantile(lateness, share);
    return ms === Number.POSITIVE_INFINITY ? null : ms;
  };
  const heldBack = started - lateness.reduce((sum, n) => sum + n, 0);
  const late = { counts: [...lateness], p50Ms: quantileMs(0.5), p99Ms: quantileMs(0.99) };
  return { started, succeeded, failed, canceled, skipped, retried, heldBack, lateness: late };
}

import { groupIntoRows, MOST_RUNS_PER_HINT } from "../../domain/dispatch/hint-size.ts";
import type { HeldBy } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { insertIntents, type OutboxRow } from "../../store/rows/outbox.ts";
import { laneKey, type Usage } from "../../store/rows/usage.ts";

/** A run of a claimed row that could not start now. */
export type PutBack = { row: OutboxRow; runId: Uuid; availableAt: Instant; heldBy: HeldBy | undefined };

const MARK_HELD = sql(
  "put_back_mark_held",
  "update live_run set held_by = $2 where id = any($1::uuid[]) and held_by = 'none'",
);

/** Writes what does not fit back as fresh, unpublished rows that do fit their tenant's limits. */
export async function putBack(
  tx: Transaction,
  runs: readonly PutBack[],
  usage: ReadonlyMap<string, Usage>,
  nowAt: Instant,
): Promise<void> {
  if (runs.length === 0) return;
  const rows = groupIntoRows(
    runs.map((one) => ({
      id: one.runId,
      tenantId: one.row.tenant_id,
      class: one.row.class,
      lane: one.row.lane,
      availableAt: one.availableAt,
    })),
    (tenantId, class_) => {
      const lane = usage.get(laneKey({ tenantId, class: class_ }));
      if (lane?.start_rate_per_second != null) return 1;
      return Math.max(1, Math.min(MOST_RUNS_PER_HINT, lane?.max_running ?? MOST_RUNS_PER_HINT));
    },
  );
  await insertIntents(
    tx,
    rows.map((row) => ({ ...row, published: false })),
    nowAt,
  );
  for (const [heldBy, some] of Map.groupBy(runs, (one) => one.heldBy)) {
    if (heldBy !== undefined) await tx.query(MARK_HELD, [some.map((one) => one.runId), heldBy]);
  }
}

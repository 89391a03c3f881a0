import type { Uuid } from "../../kernel/ids.ts";
import type { Lane } from "../states.ts";

export type Dispatchable = { id: Uuid; tenantId: Uuid; class: string; lane: Lane; availableAt: number };

/** Beyond this many runs a hint, nothing more is gained (measured: 1 → 20 runs a row doubled the pipeline). */
export const MOST_RUNS_PER_HINT = 32;

/** Runs a hint may name: many only where a run is quick and its tenant has no start rate, since one fetch starts all. */
export function runsPerHint(
  tenant: { startRatePerSecond: number | null; maxRunning: number | null },
  p95Ms: number,
): number {
  if (tenant.startRatePerSecond !== null || p95Ms >= 250) return 1;
  return Math.max(1, Math.min(MOST_RUNS_PER_HINT, tenant.maxRunning ?? MOST_RUNS_PER_HINT));
}

export type IntentRow = { tenantId: Uuid; class: string; lane: Lane; availableAt: number; runs: Uuid[] };

/**
 * Groups runs of one tenant, class, lane and instant into rows of at most `sizeOf` runs; order is kept. Remote workers ask
 * for jobs by name, so a row of theirs names one run.
 */
export function groupIntoRows(
  runs: readonly Dispatchable[],
  sizeOf: (tenantId: Uuid, class_: string) => number,
): IntentRow[] {
  const rows: IntentRow[] = [];
  const filling = new Map<string, IntentRow>();
  for (const run of runs) {
    const key = `${run.tenantId} ${run.class} ${run.lane} ${run.availableAt}`;
    const row = filling.get(key);
    const most = run.class === "remote" ? 1 : sizeOf(run.tenantId, run.class);
    if (row !== undefined && row.runs.length < most) {
      row.runs.push(run.id);
      continue;
    }
    const { tenantId, lane, availableAt } = run;
    const fresh = { tenantId, class: run.class, lane, availableAt, runs: [run.id] };
    filling.set(key, fresh);
    rows.push(fresh);
  }
  return rows;
}

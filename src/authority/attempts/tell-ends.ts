import type { EndedState } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { sql, type Transaction } from "../../store/database.ts";
import type { EndingRun } from "../../store/rows/runs/live-runs.ts";
import { instantText } from "../../store/values.ts";

const TELL = sql(
  "tell_ends",
  `insert into outbox (kind, tenant_id, class, lane, available_at, runs, publish_no, schedule_id)
   select 'schedule', tenant_id, class, 1, $5, array[run_id], 0, schedule_id
     from unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[]) as e (schedule_id, tenant_id, class, run_id)`,
);

export type RunEnd = { run: EndingRun; state: EndedState };

/** A failing run whose failure pauses its schedule hands nothing on: what waits is decided when the schedule hears of it. */
export function isPausing({ run, state }: RunEnd): boolean {
  return run.pauses_on_failure && state === "failed" && run.schedule_id !== null;
}

export function isTold(end: RunEnd): boolean {
  return (end.run.tells_end && end.run.schedule_id !== null) || isPausing(end);
}

/** Leaves word for the schedules that want to hear of these ends (outbox rows of kind `schedule`), and locks none of them. */
export async function tellEnds(tx: Transaction, ends: readonly RunEnd[], nowAt: Instant): Promise<void> {
  const told = ends.filter(isTold).map((end) => end.run);
  if (told.length === 0) return;
  await tx.query(TELL, [
    told.map((run) => run.schedule_id),
    told.map((run) => run.tenant_id),
    told.map((run) => run.class),
    told.map((run) => run.id),
    instantText(nowAt),
  ]);
}

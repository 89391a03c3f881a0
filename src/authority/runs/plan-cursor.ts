import type { Misfire } from "../../domain/definition.ts";
import { type MaterializationPlan, planMaterialization } from "../../domain/materialization.ts";
import { nextAfter } from "../../domain/recurrence/next.ts";
import type { SkipReason } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { type CursorRow, setFault } from "../../store/rows/cursors.ts";
import type { LiveRun } from "../../store/rows/live-runs.ts";
import type { Authority } from "../authority.ts";

/** What to do about instants missed for a known cause, where it is not the schedule's own misfire policy. */
export type MissedAnswer = { misfire?: Partial<Misfire>; reason?: SkipReason };

const FAULT_RETRY_MS = 60_000;

/** What one locked cursor owes; undefined: nothing, or its rule cannot be computed, which is written down. */
export async function planCursor(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  open: readonly LiveRun[],
  nowAt: Instant,
  options: { floorAt: Instant; existing: ReadonlySet<Uuid> } & MissedAnswer,
): Promise<MaterializationPlan | undefined> {
  if (cursor.next_run_at === null || cursor.next_run_at > nowAt) return undefined;
  if (cursor.next_due_at === null && cursor.fault === null) return undefined;
  const { definition } = authority.revisions.get({ scheduleId: cursor.schedule_id, revision: cursor.revision });
  const compiled = authority.revisions.rule(definition);
  if (!compiled.ok) return fault(authority, tx, cursor, compiled.fault.message, nowAt);
  const view = {
    scheduleId: cursor.schedule_id,
    tenantId: cursor.tenant_id,
    revision: cursor.revision,
    nextRunAt: cursor.next_run_at,
    lastNominalAt: cursor.last_nominal_at ?? undefined,
    runsMade: Number(cursor.runs_made),
  };
  try {
    return planMaterialization(
      view,
      { ...definition, misfire: { ...definition.misfire, ...options.misfire } },
      (at) => nextAfter(compiled.rule, at),
      open.map((run) => ({ id: run.id, scheduledAt: run.scheduled_at, state: run.state, guard: run.guard })),
      nowAt,
      { floorAt: options.floorAt, missedReason: options.reason ?? "misfire", existing: options.existing },
    );
  } catch (error) {
    // One rule that throws must not stop everybody else's instants.
    return fault(authority, tx, cursor, messageOf(error), nowAt);
  }
}

/** Sets one schedule aside, visibly; it is tried again by itself. */
async function fault(
  authority: Authority,
  tx: Transaction,
  cursor: CursorRow,
  message: string,
  nowAt: Instant,
): Promise<undefined> {
  await setFault(tx, cursor.schedule_id, message, nowAt + FAULT_RETRY_MS);
  authority.log.error({ schedule: cursor.schedule_id, fault: message }, "a schedule's rule cannot be computed");
}

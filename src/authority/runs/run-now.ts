import type { Payload } from "../../domain/definition.ts";
import { LANE_OF, type NewRun } from "../../domain/materialization.ts";
import { concernOf, planOverlap } from "../../domain/overlap.ts";
import { tellingOf } from "../../domain/planning/told-ends.ts";
import type { RunState } from "../../domain/states.ts";
import { bucketOf, instantOf, mintId, type Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { findSchedule } from "../../store/reads/schedules.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import type { CursorRow } from "../../store/rows/cursors.ts";
import { type RequestKey, takeRequestKey } from "../../store/rows/request-keys.ts";
import { endRuns } from "../../store/rows/runs/endings.ts";
import { markCancelRequested } from "../../store/rows/runs/live-marks.ts";
import { lockOpenRunsOf, openRunOf } from "../../store/rows/runs/live-runs.ts";
import { findRunState } from "../../store/rows/runs/run-state.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";
import { revisionOf } from "../revisions.ts";
import { lockScheduleOrDeleted } from "../schedules/settled-schedule.ts";
import { type QuotaRefusal, refusalOfRun } from "../tenants/admit.ts";
import { bearRuns } from "./bear.ts";
import { endingsOfWaiting } from "./making-way.ts";

export type RunMade =
  | { kind: "created" | "repeated"; runId: Uuid; state: RunState }
  | { kind: "key-reused" }
  | { kind: "overlap" }
  | QuotaRefusal
  | { kind: "deleted" }
  | { kind: "not-found" };

/**
 * One run of a schedule, now, beside its rule.
 * Locks   request_key (scope: the schedule), by inserting it; tenant_quota, where it limits runs; schedule_cursor; guard holders; waiting runs that it may replace.
 * Time    authority time, after the locks; it is the run's nominal instant.
 * Writes  request_key, run, live_run, outbox, tenant_day, audit_event.
 * Replay  the same key and body: the same run.
 */
export async function runNow(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; scheduleId: Uuid; requestKey?: RequestKey; payload?: Payload },
): Promise<RunMade> {
  const { tenantId, actor, scheduleId, requestKey, payload } = request;
  const outcome = await transactOrRefuse<RunMade>(authority, "run-now", async (tx) => {
    // The key comes first in the lock order, so its run is named before the schedule is looked at.
    const runId = mintId(await tx.authorityNow(), bucketOf(scheduleId));
    if (requestKey !== undefined) {
      const taken = await takeRequestKey(tx, scheduleId, requestKey, runId);
      if (taken.kind === "reused") {
        // Another tenant's schedule is as unknown with a key that it has seen.
        const isOurs = (await findSchedule(tx, tenantId, scheduleId)) !== undefined;
        refuse<RunMade>({ kind: isOurs ? "key-reused" : "not-found" });
      }
      if (taken.kind === "repeated") {
        const state = await findRunState(tx, tenantId, taken.subject);
        if (state === undefined) refuse<RunMade>({ kind: "not-found" });
        return { kind: "repeated", runId: taken.subject, state };
      }
    }
    // In the order of locks; what hinders more comes first.
    const refused = await refusalOfRun(tx, tenantId, payload);
    const locked = await lockScheduleOrDeleted(tx, tenantId, scheduleId);
    if (locked === undefined) refuse<RunMade>({ kind: "not-found" });
    if (locked.schedule.status === "deleted") refuse<RunMade>({ kind: "deleted" });
    if (refused !== undefined) refuse<RunMade>(refused);
    const state = await bearNow(authority, tx, locked.cursor, runId, payload);
    if (state === undefined) refuse<RunMade>({ kind: "overlap" });
    await writeAudit(tx, { tenantId, actor, action: "schedule.run-now", subject: scheduleId, after: { runId } });
    return { kind: "created", runId, state };
  });
  if (outcome.kind === "created") authority.signals.outboxGrew(0);
  return outcome;
}

/** Undefined: the overlap policy says skip, and an earlier run is open. */
async function bearNow(
  authority: Authority,
  tx: Transaction,
  cursor: Pick<CursorRow, "schedule_id" | "tenant_id" | "revision" | "content">,
  runId: Uuid,
  payload: Payload | undefined,
): Promise<"queued" | "blocked" | undefined> {
  const scheduleId = cursor.schedule_id;
  await authority.revisions.load(tx, [revisionOf(cursor)]);
  const { definition } = authority.revisions.get(revisionOf(cursor));
  const concern = concernOf(definition.overlap);
  const { open: bySchedule, undecided } = await lockOpenRunsOf(tx, [{ scheduleId, concern }]);
  if (undecided.size > 0) lookAgain();
  const nowAt = await tx.authorityNow();
  const scheduledAt = instantOf(runId);

  const open = bySchedule.get(scheduleId) ?? [];
  const seen = open.map(openRunOf);
  const plan = planOverlap(scheduleId, definition.overlap, seen, [{ id: runId, scheduledAt }]);
  if (plan.skipped.length > 0) return undefined;
  const guard = plan.born[0]!.guard;
  await endRuns(tx, endingsOfWaiting(plan, open, nowAt), nowAt);
  await markCancelRequested(tx, plan.cancelRequested, nowAt);
  const run: NewRun = {
    id: runId,
    scheduleId,
    tenantId: cursor.tenant_id,
    class: definition.class,
    lane: LANE_OF[definition.priority],
    revision: cursor.revision,
    content: cursor.content,
    trigger: "manual",
    scheduledAt,
    dueAt: scheduledAt,
    prevScheduledAt: null,
    startDeadlineAt: definition.startDeadlineMs === undefined ? null : scheduledAt + definition.startDeadlineMs,
    heldBy: guard === null ? "overlap" : "none",
    guard,
    ...tellingOf(definition),
  };
  const own = new Map(payload === undefined ? [] : [[runId, { job: null, payload }]]);
  await bearRuns(tx, [run], own, nowAt);
  return guard === null ? "blocked" : "queued";
}

import { faultOfRange, type RangeFault } from "../../../domain/backfill.ts";
import type { Excess } from "../../../domain/quotas/tenant.ts";
import { bucketOf, mintId } from "../../../kernel/ids.ts";
import type { OperationView } from "../../../store/reads/operations.ts";
import { findSchedule } from "../../../store/reads/schedules.ts";
import { readFloor } from "../../../store/rows/floor.ts";
import type { RequestKey } from "../../../store/rows/request-keys.ts";
import type { Authority } from "../../authority.ts";
import { refuse, transactOrRefuse } from "../../refusal.ts";
import { hearSchedule, lockScheduleOrDeleted, settleSchedule } from "../../schedules/settled-schedule.ts";
import { excessOfRuns, hearRequest, openOperation } from "../begin.ts";
import type { BackfillRange } from "./estimate.ts";
import { undecidedFrom } from "./past.ts";
import type { BackfillArguments } from "./step.ts";

export type BackfillMade =
  | { kind: "created"; operation: OperationView }
  | { kind: "repeated"; operation: OperationView }
  | { kind: "invalid"; fault: RangeFault }
  | { kind: "key-reused" }
  | { kind: "too-many" }
  | { kind: "quota"; excess: Excess }
  | { kind: "deleted" }
  | { kind: "not-found" };

/**
 * Begins a backfill: a row that the operations' driver works on. What is due already is settled first, so that the
 * range ends before what materialize still has to decide.
 * Locks   request_key (scope: the schedule), by inserting it; tenant_quota, where it limits runs; schedule_cursor, schedule; what settling locks.
 * Time    authority time, after the locks.
 * Writes  request_key, what settling writes, operation, audit_event.
 * Replay  the same key and body: the same operation.
 */
export async function createBackfill(
  authority: Authority,
  request: BackfillRange & {
    actor: string;
    reason: string | null;
    pacePerSecond: number;
    /** Runs it is expected to make; null where they were too many to count. */
    total: number | null;
    requestKey?: RequestKey;
  },
): Promise<BackfillMade> {
  const { tenantId, scheduleId, actor, reason, pacePerSecond, requestKey } = request;
  const made = await transactOrRefuse<BackfillMade>(authority, "create-backfill", async (tx) => {
    const id = mintId(await tx.authorityNow(), bucketOf(scheduleId));
    const heard = await hearRequest(tx, scheduleId, requestKey, { id, tenantId });
    if (heard?.kind === "repeated") return heard;
    if (heard !== undefined) {
      const isOurs = (await findSchedule(tx, tenantId, scheduleId)) !== undefined;
      refuse<BackfillMade>({ kind: isOurs ? heard.kind : "not-found" });
    }
    const excess = await excessOfRuns(tx, tenantId);
    const locked = await lockScheduleOrDeleted(tx, tenantId, scheduleId);
    if (locked === undefined) return refuse<BackfillMade>({ kind: "not-found" });
    if (locked.schedule.status === "deleted") refuse<BackfillMade>({ kind: "deleted" });
    if (excess !== undefined) refuse<BackfillMade>({ kind: "quota", excess });
    const { schedule, cursor } = await settleSchedule(authority, tx, await hearSchedule(authority, tx, locked));
    const nowAt = await tx.authorityNow();
    const undecidedAt = undecidedFrom(schedule.status, cursor);
    const fault = faultOfRange(request, undecidedAt, await readFloor(tx), nowAt);
    if (fault !== undefined) refuse<BackfillMade>({ kind: "invalid", fault });
    const { fromAt: from, toAt: to, policy, total } = request;
    const args: BackfillArguments = { from, to, policy };
    const kind = "backfill";
    const operation = { id, tenantId, scheduleId, kind, arguments: args, total, pacePerSecond, actor, reason };
    const opened = await openOperation(tx, operation, { action: "schedule.backfill", subject: scheduleId }, nowAt);
    return opened.kind === "created" ? opened : refuse<BackfillMade>(opened);
  });
  if (made.kind === "created") authority.signals.outboxGrew(0);
  return made;
}

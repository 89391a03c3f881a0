import { faultOfRange, type RangeFault } from "../../../domain/backfill.ts";
import { MOST_OPEN_OPERATIONS } from "../../../domain/operation.ts";
import { bucketOf, mintId } from "../../../kernel/ids.ts";
import { findOperation, type OperationView } from "../../../store/reads/operations.ts";
import { findSchedule } from "../../../store/reads/schedules.ts";
import { writeAudit } from "../../../store/rows/audit.ts";
import { readFloor } from "../../../store/rows/floor.ts";
import { countOpenOperations, insertOperation } from "../../../store/rows/operations/operations.ts";
import { type RequestKey, takeRequestKey } from "../../../store/rows/request-keys.ts";
import type { Authority } from "../../authority.ts";
import { refuse, transactOrRefuse } from "../../refusal.ts";
import { hearSchedule, lockScheduleOrDeleted, settleSchedule } from "../../schedules/settled-schedule.ts";
import type { BackfillRange } from "./estimate.ts";
import { undecidedFrom } from "./past.ts";
import type { BackfillArguments } from "./step.ts";

export type BackfillMade =
  | { kind: "created"; operation: OperationView }
  | { kind: "repeated"; operation: OperationView }
  | { kind: "invalid"; fault: RangeFault }
  | { kind: "key-reused" }
  | { kind: "too-many" }
  | { kind: "deleted" }
  | { kind: "not-found" };

/**
 * Begins a backfill: a row that the operations' driver works on. What is due already is settled first, so that the
 * range ends before what materialize still has to decide.
 * Locks   request_key (scope: the schedule), by inserting it; schedule_cursor, schedule; what settling locks.
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
    if (requestKey !== undefined) {
      const taken = await takeRequestKey(tx, scheduleId, requestKey, id);
      if (taken.kind === "reused") {
        const isOurs = (await findSchedule(tx, tenantId, scheduleId)) !== undefined;
        refuse<BackfillMade>({ kind: isOurs ? "key-reused" : "not-found" });
      }
      if (taken.kind === "repeated") {
        const operation = await findOperation(tx, tenantId, taken.subject);
        if (operation === undefined) return refuse<BackfillMade>({ kind: "not-found" });
        return { kind: "repeated", operation };
      }
    }
    const locked = await lockScheduleOrDeleted(tx, tenantId, scheduleId);
    if (locked === undefined) return refuse<BackfillMade>({ kind: "not-found" });
    if (locked.schedule.status === "deleted") refuse<BackfillMade>({ kind: "deleted" });
    const { schedule, cursor } = await settleSchedule(authority, tx, await hearSchedule(authority, tx, locked));
    const nowAt = await tx.authorityNow();
    const undecidedAt = undecidedFrom(schedule.status, cursor);
    const fault = faultOfRange(request, undecidedAt, await readFloor(tx), nowAt);
    if (fault !== undefined) refuse<BackfillMade>({ kind: "invalid", fault });
    if ((await countOpenOperations(tx, tenantId)) >= MOST_OPEN_OPERATIONS) refuse<BackfillMade>({ kind: "too-many" });
    const { fromAt: from, toAt: to, policy, total } = request;
    const args: BackfillArguments = { from, to, policy };
    const operation = {
      id,
      tenantId,
      scheduleId,
      kind: "backfill",
      arguments: args,
      total,
      pacePerSecond,
      actor,
      reason,
    };
    await insertOperation(tx, operation, nowAt);
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "schedule.backfill",
      subject: scheduleId,
      after: { operation: id, ...args, pacePerSecond, reason },
    });
    return { kind: "created", operation: (await findOperation(tx, tenantId, id))! };
  });
  if (made.kind === "created") authority.signals.outboxGrew(0);
  return made;
}

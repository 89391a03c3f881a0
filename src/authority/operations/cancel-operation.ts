import type { Uuid } from "../../kernel/ids.ts";
import { findOperation, type OperationView } from "../../store/reads/operations.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockOperation, updateOperation } from "../../store/rows/operations/operations.ts";
import { isLockTimeout } from "../../store/sql-errors.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";

export type CancelOperationOutcome =
  | { kind: "canceled" | "repeated" | "ended"; operation: OperationView }
  | { kind: "not-found" };

/**
 * Ends an operation between two of its steps; what it has done stays done.
 * Locks   operation, waiting for the step that is being taken.
 * Writes  operation, audit_event.
 * Replay  `repeated`.
 */
export async function cancelOperation(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; operationId: Uuid },
): Promise<CancelOperationOutcome> {
  const { tenantId, actor, operationId } = request;
  return transactOrRefuse<CancelOperationOutcome>(authority, "cancel-operation", async (tx) => {
    const operation = await lockOperation(tx, operationId).catch((error: unknown) => {
      if (isLockTimeout(error)) lookAgain();
      throw error;
    });
    if (operation === undefined || operation.tenant_id !== tenantId) {
      return refuse<CancelOperationOutcome>({ kind: "not-found" });
    }
    const view = async () => (await findOperation(tx, tenantId, operationId))!;
    if (operation.state === "canceled") return { kind: "repeated", operation: await view() };
    if (operation.state === "done" || operation.state === "failed") return { kind: "ended", operation: await view() };
    const nowAt = await tx.authorityNow();
    await updateOperation(tx, { ...operation, state: "canceled", message: null, nextStepAt: nowAt }, nowAt);
    const { done, failed } = operation;
    await writeAudit(tx, {
      tenantId,
      actor,
      action: "operation.cancel",
      subject: operationId,
      after: { done, failed },
    });
    return { kind: "canceled", operation: await view() };
  });
}

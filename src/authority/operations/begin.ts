import { MOST_OPEN_OPERATIONS } from "../../domain/operation.ts";
import type { Excess } from "../../domain/quotas/tenant.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { findOperation, type OperationView } from "../../store/reads/operations.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { countOpenOperations, insertOperation, type NewOperation } from "../../store/rows/operations/operations.ts";
import { type RequestKey, takeRequestKey } from "../../store/rows/request-keys.ts";
import { lockRoomForRuns } from "../tenants/admit.ts";
import type { Step } from "./kind.ts";

/** What every kind of long work has in common where it begins: its request key before all else, its row last. */

/** Undefined: the key is new, and names the operation `id` from now on. */
export type Heard = { kind: "repeated"; operation: OperationView } | { kind: "key-reused" | "not-found" } | undefined;

/** Takes the request key of `operation` in a scope. `not-found`: the key once made something that is not of this tenant. */
export async function hearRequest(
  tx: Transaction,
  scope: Uuid,
  requestKey: RequestKey | undefined,
  operation: { id: Uuid; tenantId: Uuid },
): Promise<Heard> {
  if (requestKey === undefined) return undefined;
  const taken = await takeRequestKey(tx, scope, requestKey, operation.id);
  if (taken.kind === "taken") return undefined;
  if (taken.kind === "reused") return { kind: "key-reused" };
  const made = await findOperation(tx, operation.tenantId, taken.subject);
  return made === undefined ? { kind: "not-found" } : { kind: "repeated", operation: made };
}

/** Writes the row that the driver works on, and who asked for it. `too-many`: the tenant has as many open as it may. */
export async function openOperation(
  tx: Transaction,
  operation: NewOperation,
  audit: { action: string; subject: Uuid },
  nowAt: Instant,
): Promise<{ kind: "created"; operation: OperationView } | { kind: "too-many" }> {
  const { id, tenantId, actor, pacePerSecond, reason } = operation;
  if ((await countOpenOperations(tx, tenantId)) >= MOST_OPEN_OPERATIONS) return { kind: "too-many" };
  await insertOperation(tx, operation, nowAt);
  const after = { operation: id, ...(operation.arguments as object), pacePerSecond, reason };
  await writeAudit(tx, { tenantId, actor, ...audit, after });
  return { kind: "created", operation: (await findOperation(tx, tenantId, id))! };
}

/** What hinders an operation that makes runs from beginning: it could make none now. Locks tenant_quota, where it limits runs. */
export async function excessOfRuns(tx: Transaction, tenantId: Uuid): Promise<Excess | undefined> {
  const { most, excess } = await lockRoomForRuns(tx, tenantId);
  return most < 1 ? excess : undefined;
}

/** The longest an operation waits before it looks whether a quota was raised. */
const LONGEST_QUOTA_WAIT_MS = 60_000;

/** What has begun is not given up for a quota: it goes on when there is room. */
export function waitForQuota(excess: Excess): Pick<Step, "waitMs" | "message"> {
  const { quota, used, limit, retryAfterMs } = excess;
  return {
    waitMs: Math.min(LONGEST_QUOTA_WAIT_MS, retryAfterMs),
    message: `it waits for the tenant's quota ${quota}: ${used} of ${limit} are used`,
  };
}

import type { LetterFilter } from "../../../domain/dead-letters.ts";
import type { Excess } from "../../../domain/quotas/tenant.ts";
import { mintId, randomBucket, type Uuid } from "../../../kernel/ids.ts";
import type { OperationView } from "../../../store/reads/operations.ts";
import type { RequestKey } from "../../../store/rows/request-keys.ts";
import type { Authority } from "../../authority.ts";
import { refuse, transactOrRefuse } from "../../refusal.ts";
import { excessOfRuns, hearRequest, openOperation } from "../begin.ts";
import { argumentsOf } from "./walk.ts";

export type LettersOperationMade =
  | { kind: "created" | "repeated"; operation: OperationView }
  | { kind: "key-reused" }
  | { kind: "too-many" }
  | { kind: "quota"; excess: Excess }
  | { kind: "not-found" };

/**
 * Begins the replay or dismissal of many dead letters: a row that the operations' driver works on. It means the letters
 * that are open now; what fails later is not part of it.
 * Locks   request_key (scope: the tenant), by inserting it; for a replay tenant_quota, where it limits runs.
 * Time    authority time, after it: letters of later failures are left alone.
 * Writes  request_key, operation, audit_event.
 * Replay  the same key and body: the same operation.
 */
export async function createLettersOperation(
  authority: Authority,
  request: {
    tenantId: Uuid;
    actor: string;
    kind: "replay" | "dismiss";
    filter: LetterFilter;
    reason: string | null;
    /** Null: no pace. */
    pacePerSecond: number | null;
    total: number | null;
    requestKey?: RequestKey;
  },
): Promise<LettersOperationMade> {
  const { tenantId, actor, kind, filter, reason, pacePerSecond, total, requestKey } = request;
  const made = await transactOrRefuse<LettersOperationMade>(authority, "create-letters-operation", async (tx) => {
    const id = mintId(await tx.authorityNow(), randomBucket());
    const heard = await hearRequest(tx, tenantId, requestKey, { id, tenantId });
    if (heard?.kind === "repeated") return heard;
    if (heard !== undefined) refuse<LettersOperationMade>(heard);
    const excess = kind === "replay" ? await excessOfRuns(tx, tenantId) : undefined;
    if (excess !== undefined) refuse<LettersOperationMade>({ kind: "quota", excess });
    const nowAt = await tx.authorityNow();
    const args = argumentsOf(filter, nowAt);
    const scheduleId = filter.scheduleId ?? null;
    const operation = { id, tenantId, scheduleId, kind, arguments: args, total, pacePerSecond, actor, reason };
    const opened = await openOperation(tx, operation, { action: `dead-letters.${kind}`, subject: id }, nowAt);
    return opened.kind === "created" ? opened : refuse<LettersOperationMade>(opened);
  });
  if (made.kind === "created") authority.signals.outboxGrew(0);
  return made;
}

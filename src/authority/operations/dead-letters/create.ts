import type { LetterFilter } from "../../../domain/dead-letters.ts";
import { MOST_OPEN_OPERATIONS } from "../../../domain/operation.ts";
import { mintId, randomBucket, type Uuid } from "../../../kernel/ids.ts";
import { findOperation, type OperationView } from "../../../store/reads/operations.ts";
import { writeAudit } from "../../../store/rows/audit.ts";
import { countOpenOperations, insertOperation } from "../../../store/rows/operations/operations.ts";
import { type RequestKey, takeRequestKey } from "../../../store/rows/request-keys.ts";
import type { Authority } from "../../authority.ts";
import { refuse, transactOrRefuse } from "../../refusal.ts";
import { argumentsOf } from "./walk.ts";

export type LettersOperationMade =
  | { kind: "created" | "repeated"; operation: OperationView }
  | { kind: "key-reused" }
  | { kind: "too-many" }
  | { kind: "not-found" };

/**
 * Begins the replay or dismissal of many dead letters: a row that the operations' driver works on. It means the letters
 * that are open now; what fails later is not part of it.
 * Locks   request_key (scope: the tenant), by inserting it.
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
    if (requestKey !== undefined) {
      const taken = await takeRequestKey(tx, tenantId, requestKey, id);
      if (taken.kind === "reused") refuse<LettersOperationMade>({ kind: "key-reused" });
      if (taken.kind === "repeated") {
        const operation = await findOperation(tx, tenantId, taken.subject);
        if (operation === undefined) return refuse<LettersOperationMade>({ kind: "not-found" });
        return { kind: "repeated", operation };
      }
    }
    if ((await countOpenOperations(tx, tenantId)) >= MOST_OPEN_OPERATIONS) {
      refuse<LettersOperationMade>({ kind: "too-many" });
    }
    const nowAt = await tx.authorityNow();
    const args = argumentsOf(filter, nowAt);
    const scheduleId = filter.scheduleId ?? null;
    await insertOperation(
      tx,
      { id, tenantId, scheduleId, kind, arguments: args, total, pacePerSecond, actor, reason },
      nowAt,
    );
    await writeAudit(tx, {
      tenantId,
      actor,
      action: `dead-letters.${kind}`,
      subject: id,
      after: { ...args, pacePerSecond, reason },
    });
    return { kind: "created", operation: (await findOperation(tx, tenantId, id))! };
  });
  if (made.kind === "created") authority.signals.outboxGrew(0);
  return made;
}

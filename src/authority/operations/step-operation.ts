import {
  addTally,
  afterTrouble,
  hasFailedTooOften,
  limitOfStep,
  type OperationState,
  pauseOfPace,
} from "../../domain/operation.ts";
import type { Instant } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { lockDueOperation, type OperationRow, updateOperation } from "../../store/rows/operations/operations.ts";
import { isLockTimeout } from "../../store/sql-errors.ts";
import type { Authority } from "../authority.ts";
import { isNoFault } from "../refusal.ts";
import { isPoisonedItem } from "../refused-item.ts";
import type { OperationKind, OperationKinds, Step } from "./kind.ts";

/** `missed`: another process is at it, or it has ended. `postponed`: what it needs is moving; look again soon. */
export type Stepped = "stepped" | "ended" | "failed" | "troubled" | "postponed" | "missed";

/**
 * Takes the next step of one operation, if its time has come.
 * Locks   operation, skipping what another driver holds; then what the kind locks.
 * Time    authority time, after the step.
 * Writes  what the kind writes, and the operation's progress with it; audit_event at its end.
 * Replay  a step that committed has moved the cursor, one that did not has left nothing.
 */
export async function stepOperation(authority: Authority, kinds: OperationKinds, id: Uuid): Promise<Stepped> {
  let tried: OperationRow | undefined;
  const outcome = await takeStep(authority, id, (tx, operation) => {
    tried = operation;
    return kindOf(kinds, operation).step(authority, tx, operation, limitOfStep(operation.tries));
  }).catch((error: unknown) => {
    if (isNoFault(error)) return "postponed" as const;
    if (tried === undefined) throw error;
    return afterError(authority, kinds, tried, error);
  });
  if (tried !== undefined) authority.metrics.operationSteps.inc({ kind: tried.kind, outcome });
  return outcome;
}

function kindOf(kinds: OperationKinds, operation: OperationRow): OperationKind {
  const kind = kinds[operation.kind];
  if (kind === undefined) throw new Error(`this program knows no operation of kind ${operation.kind}`);
  return kind;
}

async function takeStep(
  authority: Authority,
  id: Uuid,
  work: (tx: Transaction, operation: OperationRow) => Promise<Step>,
): Promise<"stepped" | "ended" | "failed" | "missed"> {
  const done = await authority.transact("operation-step", async (tx) => {
    const operation = await lockDueOperation(tx, id);
    if (operation === undefined) return undefined;
    await authority.faults.reach("operation:locked");
    const step = await work(tx, operation);
    const nowAt = await tx.authorityNow();
    const failed = operation.failed + step.failed;
    const tooMany = hasFailedTooOften(failed);
    const state: OperationState = tooMany ? "failed" : (step.end ?? "working");
    await write(
      tx,
      {
        ...operation,
        state,
        cursor: step.cursor,
        done: operation.done + step.done,
        failed,
        tally: addTally(operation.tally, step.tally),
        // A step that went well is followed by a larger one, up to the largest.
        tries: step.failed > 0 ? 0 : Math.max(0, Math.min(2, operation.tries) - 1),
        message: tooMany
          ? `${failed} items could not be done; the last one: ${step.message}`
          : messageAfter(operation, step),
        nextStepAt: nowAt + Math.max(step.waitMs ?? 0, pauseOfPace(step.done + step.failed, operation.pace_per_second)),
      },
      nowAt,
    );
    await authority.faults.reach("operation:step-written");
    return { state, intends: step.intends };
  });
  await authority.faults.reach("operation:step-committed");
  if (done === undefined) return "missed";
  if (done.intends) authority.signals.outboxGrew(0);
  if (done.state === "working") return "stepped";
  return done.state === "failed" ? "failed" : "ended";
}

/** Why the last item failed stays to be read; what is waited for passes. */
function messageAfter(operation: OperationRow, step: Step): string | null {
  const isNews = step.failed > 0 || step.end === "failed" || operation.failed === 0;
  return isNews ? (step.message ?? null) : operation.message;
}

/** The step is undone. An item that fails alone is passed over; anything else is tried again, a number of times. */
async function afterError(
  authority: Authority,
  kinds: OperationKinds,
  tried: OperationRow,
  error: unknown,
): Promise<Stepped> {
  const isPoison = isPoisonedItem(error);
  const { id, kind } = tried;
  authority.log.warn({ operation: id, kind, tries: tried.tries + 1, reason: messageOf(error) }, "a step has failed");
  if (isPoison && limitOfStep(tried.tries) === 1) {
    return takeStep(authority, id, async (tx, operation) => ({
      ...(await kindOf(kinds, operation).passOver(authority, tx, operation)),
      message: messageOf(error),
    })).catch((again: unknown) => {
      if (isNoFault(again)) return "postponed";
      throw again;
    });
  }
  const { giveUp, pauseMs } = afterTrouble(tried.tries, isPoison);
  return authority.transact("operation-trouble", async (tx) => {
    const operation = await lockDueOperation(tx, id);
    // Somebody else has gone on with it, or it was canceled.
    if (operation === undefined || operation.tries !== tried.tries) return "missed";
    const nowAt = await tx.authorityNow();
    // A lock that a stranger keeps is no fault of the operation: it is waited for, however long.
    const state = giveUp && !isLockTimeout(error) ? "failed" : operation.state;
    const message = messageOf(error);
    const tries = operation.tries + 1;
    await write(tx, { ...operation, state, tries, message, nextStepAt: nowAt + pauseMs }, nowAt);
    return state === "failed" ? "failed" : "troubled";
  });
}

async function write(
  tx: Transaction,
  operation: OperationRow & { nextStepAt: Instant },
  nowAt: Instant,
): Promise<void> {
  await updateOperation(tx, operation, nowAt);
  const { id, tenant_id, actor, state, done, failed, message } = operation;
  if (state === "pending" || state === "working") return;
  await writeAudit(tx, {
    tenantId: tenant_id,
    actor,
    action: "operation.end",
    subject: id,
    after: { state, done, failed, message },
  });
}

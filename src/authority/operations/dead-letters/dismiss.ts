import { countNames } from "../../../domain/operation.ts";
import type { LetterPlace } from "../../../store/rows/dead-letters.ts";
import type { OperationRow } from "../../../store/rows/operations/operations.ts";
import { dismissIn } from "../../dead-letters/dismiss.ts";
import type { OperationKind, Step } from "../kind.ts";
import { walkOn } from "./walk.ts";

/**
 * Many dead letters are resolved without running anything.
 * Locks   dead_letter. Time: after the locks. Writes dead_letter, dead_letter_resolution.
 * Replay  a letter that is resolved is not found again, and of a failure that came later it is left alone.
 */
export const dismiss: OperationKind = {
  async step(authority, tx, operation, limit) {
    const { meant, rest } = await walkOn(tx, operation, limit);
    const { actor, reason, id: operationId } = operation;
    const outcomes = await dismissIn(authority, tx, operation.tenant_id, meant, { actor, reason, operationId });
    const tally = countNames(outcomes.map((one) => one.kind));
    return { ...goOn(operation, rest), done: tally.dismissed ?? 0, failed: 0, tally, intends: false };
  },

  async passOver(_authority, tx, operation) {
    const { meant, rest } = await walkOn(tx, operation, 1);
    return { ...goOn(operation, rest), done: 0, failed: meant.length, tally: {}, intends: false };
  },
};

function goOn(operation: OperationRow, rest: LetterPlace | undefined): Pick<Step, "cursor" | "end"> {
  return rest === undefined ? { cursor: operation.cursor, end: "done" } : { cursor: rest };
}

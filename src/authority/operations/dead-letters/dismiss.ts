import { countNames } from "../../../domain/operation.ts";
import { dismissIn } from "../../dead-letters/dismiss.ts";
import type { OperationKind } from "../kind.ts";
import { goOn, passOverNext } from "./replay.ts";
import { walkOn } from "./walk.ts";

/**
 * Many dead letters are resolved without running anything.
 * Locks   dead_letter. Time: after the locks. Writes dead_letter, dead_letter_resolution.
 * Replay  a letter that is resolved is not found again.
 */
export const dismiss: OperationKind = {
  async step(authority, tx, operation, limit) {
    const { meant, rest } = await walkOn(tx, operation, limit);
    const outcomes = await dismissIn(
      authority,
      tx,
      operation.tenant_id,
      meant.map((one) => one.id),
      { actor: operation.actor, reason: operation.reason, operationId: operation.id },
    );
    const tally = countNames(outcomes.map((one) => one.kind));
    return { ...goOn(operation, rest), done: tally.dismissed ?? 0, failed: 0, tally, intends: false };
  },

  async passOver(_authority, tx, operation) {
    return passOverNext(tx, operation);
  },
};

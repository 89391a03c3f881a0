import type { Tally } from "../../domain/operation.ts";
import type { Transaction } from "../../store/database.ts";
import type { OperationRow } from "../../store/rows/operations/operations.ts";
import type { Authority } from "../authority.ts";

/** What one step of an operation came to; its progress is written in the same transaction as its work. */
export type Step = {
  /** Where the next step begins; whatever the kind needs, as JSON. */
  cursor: unknown;
  /** Items done, and items that cannot be done. Both count for the pace. */
  done: number;
  failed: number;
  tally: Tally;
  /** Left out: there is more to do. */
  end?: "done" | "failed";
  /** What it waits for, or why it failed. */
  message?: string;
  /** Nothing can be done for so long. */
  waitMs?: number;
  /** Whether it has written outbox rows. */
  intends: boolean;
};

/** Of a step that only waits, or finds that there is no more to do. */
export const NOTHING_DONE = { done: 0, failed: 0, tally: {}, intends: false } as const;

/**
 * A kind of operation. The operation's row is locked by the caller before anything else; locks of the step follow in the
 * usual order. A step may throw `lookAgain()`: then it is taken again in a new transaction, a little later.
 */
export type OperationKind = {
  /** Does the next items, at most `limit` of them. What a step has done, a second one finds done. */
  step(authority: Authority, tx: Transaction, operation: OperationRow, limit: number): Promise<Step>;
  /** Leaves the next item alone, which fails by itself, and counts it as failed. */
  passOver(authority: Authority, tx: Transaction, operation: OperationRow): Promise<Step>;
};

export type OperationKinds = Readonly<Record<string, OperationKind>>;

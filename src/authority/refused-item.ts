import { isLockTimeout, isPoison } from "../store/sql-errors.ts";

/**
 * An error of one item in a batch: bad data, or a row that a stranger holds locked. The batch is split to find it; its
 * neighbours commit.
 */
export function isRefusedItem(error: unknown): boolean {
  return isPoison(error) || isLockTimeout(error);
}

/** Bad data: saying the same again cannot help. A locked row can. */
export function isPoisonedItem(error: unknown): boolean {
  return isPoison(error);
}

import { messageOf } from "../kernel/errors.ts";
import { BadItem } from "./arrays.ts";

/** What an error of PostgreSQL, or of the connection to it, means. */

/** SQLSTATE of an error that came from PostgreSQL. */
export function sqlStateOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

/** A data error: the item itself is at fault (classes 22 and 23), so the batch is split to find it. */
export function isPoison(error: unknown): boolean {
  if (error instanceof BadItem) return true;
  const state = sqlStateOf(error);
  return state !== undefined && (state.startsWith("22") || state.startsWith("23"));
}

/** A lock was not given in time: split the batch so that one stranger's lock holds up one item only. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === "55P03";
}

/** The statement took longer than it was given. */
export function isStatementTimeout(error: unknown): boolean {
  return sqlStateOf(error) === "57014";
}

export function isDeadlock(error: unknown): boolean {
  const state = sqlStateOf(error);
  return state === "40P01" || state === "40001";
}

/** The connection is gone, and with it whatever was under way on it. */
export function isConnectionLoss(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state !== undefined) return state.startsWith("08") || state.startsWith("57P");
  const code = (error as { code?: unknown } | null)?.code;
  return (
    code === "ECONNRESET" ||
    code === "EPIPE" ||
    code === "ETIMEDOUT" ||
    /connection (terminated|ended|error)|socket/i.test(messageOf(error))
  );
}

import { PunctualError } from "../../kernel/errors.ts";
import type { Database, Statement } from "../database.ts";
import { isStatementTimeout } from "../sql-errors.ts";

/** What lies in memory is read in some ms; a cold disk may need this long. */
const TIMEOUT_MS = 5_000;

/** A read that people wait for. Throws `busy`, with what would ask for less, when it takes too long. */
export async function readBounded<Row>(
  db: Pick<Database, "queryWithin">,
  statement: Statement,
  values: readonly unknown[],
  { what, askFor }: { what: string; askFor: string },
): Promise<Row[]> {
  try {
    return await db.queryWithin<Row>(TIMEOUT_MS, statement, values);
  } catch (error) {
    if (!isStatementTimeout(error)) throw error;
    const message = `The ${what} were not found within ${TIMEOUT_MS / 1000} s; ask for ${askFor}`;
    throw new PunctualError("busy", message, { actor: "caller", retryable: true, cause: error });
  }
}

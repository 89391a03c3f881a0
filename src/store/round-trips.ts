import type pg from "pg";
import { encodeArray } from "./arrays.ts";
import type { Statement } from "./database.ts";

/** One statement, in one round trip. */
export async function queryWith<Row>(
  client: pg.PoolClient,
  statement: Statement,
  values: readonly unknown[],
): Promise<Row[]> {
  const encoded = values.map((value, i) => {
    const type = statement.arrays.get(i);
    if (type === undefined || !Array.isArray(value)) return value;
    // unnest() fills its shorter arrays up with nulls: a column that has nothing to say costs nothing.
    return encodeArray(type, statement.arrays.size > 1 && value.every(isNothing) ? [] : value);
  });
  const result = await client.query({ name: statement.name, text: statement.text, values: encoded });
  return result.rows as Row[];
}

/** A statement in a transaction of its own, in one round trip: what begins and ends it is sent along. */
export async function atOnce<Row>(
  client: pg.PoolClient,
  begin: string,
  statement: Statement,
  values: readonly unknown[],
): Promise<Row[]> {
  const pipelined = client as unknown as { pipeline: boolean };
  pipelined.pipeline = true;
  try {
    // Where the beginning fails, its transaction has failed, and the statement is refused.
    const [began, rows, ended] = await Promise.allSettled([
      client.query(begin),
      queryWith<Row>(client, statement, values),
      client.query("rollback"),
    ]);
    const [failed] = [began, rows, ended].filter((one) => one.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    return (rows as PromiseFulfilledResult<Row[]>).value;
  } finally {
    pipelined.pipeline = false;
  }
}

const isNothing = (item: unknown) => item === null || item === undefined;

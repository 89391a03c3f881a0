import type pg from "pg";
import type { Uuid } from "../../src/kernel/ids.ts";
import type { Queryable } from "../../src/store/database.ts";
import { CHAINS_HOLD, findBrokenChains } from "../../src/store/invariants/chains.ts";
import { findUnfitGuards, GUARDS_FIT } from "../../src/store/invariants/guards.ts";
import type { Invariant } from "../../src/store/invariants/invariant.ts";
import { INVARIANTS } from "../../src/store/invariants/invariants.ts";

/**
 * The seven invariants of the protocol, as far as the tables tell, `but` those of these names. Throws with the first few
 * offenders of the first that is broken.
 */
export async function checkInvariants(admin: pg.Pool, but: readonly string[] = []): Promise<void> {
  const { rows } = await admin.query<{ ids: Uuid[] }>(
    "select coalesce(array_agg(schedule_id), '{}') as ids from schedule_cursor",
  );
  const ids = rows[0]!.ids;
  const everything: Readonly<Record<Invariant["over"], readonly unknown[]>> = {
    schedules: [ids],
    starts: [ids, null, null],
    runs: [
      "1970-01-01Z",
      "9999-01-01Z",
      "00000000-0000-0000-0000-000000000000",
      "ffffffff-ffff-ffff-ffff-ffffffffffff",
    ],
    moment: [],
  };
  const db: Queryable = {
    query: async <Row>(statement: { text: string }, values: readonly unknown[] = []) =>
      (await admin.query(statement.text, [...values])).rows as Row[],
  };
  const unknown = but.filter((one) => !INVARIANTS.some(({ name }) => name === one));
  if (unknown.length > 0) throw new Error(`nothing is called ${unknown.join(", ")}`);
  for (const { name, over, statement } of INVARIANTS) {
    if (but.includes(name)) continue;
    const broken = await db.query(statement, everything[over]);
    if (broken.length > 0) throw new Error(`invariant broken: ${name}: ${show(broken)}`);
  }
  const broken = await inSnapshot(admin, (at) => findBrokenChains(at, ids));
  if (broken.length > 0) throw new Error(`invariant broken: ${CHAINS_HOLD}: ${show(broken)}`);
  const unfit = await findUnfitGuards(db, ids);
  if (unfit.length > 0) throw new Error(`invariant broken: ${GUARDS_FIT}: ${show(unfit)}`);
}

/** Reads of one state, with instants as the store's own connections give them. */
async function inSnapshot<T>(admin: pg.Pool, read: (at: Queryable) => Promise<T>): Promise<T> {
  const client = await admin.connect();
  try {
    await client.query("begin transaction isolation level repeatable read, read only");
    return await read({
      query: async <Row>(statement: { text: string }, values: readonly unknown[] = []) =>
        (await client.query(statement.text, [...values])).rows.map((row) =>
          Object.fromEntries(
            Object.entries(row).map(([name, value]) => [name, value instanceof Date ? value.getTime() : value]),
          ),
        ) as Row[],
    });
  } finally {
    await client.query("rollback");
    client.release();
  }
}

function show(rows: readonly unknown[]): string {
  return JSON.stringify(rows.slice(0, 5), (_, value) => (typeof value === "bigint" ? `${value}` : value));
}

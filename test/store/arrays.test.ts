import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../src/store/database.ts";
import { createWorld, type World } from "../support/world.ts";

describe("arrays sent in PostgreSQL's binary format", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  async function echo(type: string, items: readonly unknown[]): Promise<unknown[]> {
    const statement = sql(`echo_${type}`, `select x from unnest($1::${type}[]) with ordinality as u (x, n) order by n`);
    return (await world.db.query<{ x: unknown }>(statement, [items])).map((row) => row.x);
  }

  it.each([
    ["uuid", fc.uuid()],
    ["int", fc.integer()],
    ["smallint", fc.integer({ min: -32_768, max: 32_767 })],
    ["bigint", fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
    ["boolean", fc.boolean()],
    ["text", fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", "?").toWellFormed())],
    ["timestamptz", fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 })],
    ["jsonb", fc.record({ a: fc.integer(), b: fc.array(fc.boolean()) })],
  ] as const)("%s items and nulls come back as they were", async (type, arbitrary) => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option<unknown>(arbitrary, { freq: 4 }), { maxLength: 40 }), async (items) => {
        expect(await echo(type, items)).toEqual(items);
      }),
      { numRuns: 30 },
    );
  });

  it("instants keep their microseconds", async () => {
    const sent = [1_795_978_235_123.456, 0.001, -0.001, 253_402_300_799_999];
    const micros = (await echo("timestamptz", sent)).map((at) => Math.round(Number(at) * 1000));
    expect(micros).toEqual(sent.map((at) => Math.round(at * 1000)));
  });

  it("an item that is no uuid is refused before anything is sent, by name", async () => {
    await expect(echo("uuid", ["not-a-uuid"])).rejects.toThrow('not a uuid: "not-a-uuid"');
    await expect(echo("uuid", ["0000000g-0000-0000-0000-000000000000"])).rejects.toThrow("not a uuid");
  });

  it("a batch's columns stand in one list of expressions, short ones filled up with nulls", async () => {
    const statement = sql(
      "columns",
      `select r.id, r.n, r.word, k.name
       from unnest($1::int[], $2::bigint[],
                   $3::text[]) as r (id, n, word)
       join unnest($4::int[], $5::text[]) as k (id, name) on k.id = r.id
      order by r.id`,
    );
    expect(statement.text).not.toMatch(/from\s+unnest/);
    const rows = await world.db.query(statement, [
      [1, 2, 3],
      [null, null, null],
      ["a", null, "c"],
      [1, 3],
      ["x", "y"],
    ]);
    expect(rows).toEqual([
      { id: 1, n: null, word: "a", name: "x" },
      { id: 3, n: null, word: "c", name: "y" },
    ]);
  });

  it.each([
    ["a row type, which is more than one column", "select * from unnest($1::tenant[]) as t (id, name)"],
    ["fewer names than arrays", "select * from unnest($1::int[], $2::int[]) as r (a)"],
    ["more names than arrays", "select * from unnest($1::int[]) as r (a, b)"],
    ["numbered rows", "select * from unnest($1::int[]) with ordinality as r (a, n)"],
    ["a remark in between", "select * from unnest($1::int[], -- b\n $2::int[]) as r (a, b)"],
  ])("%s: the statement stays as it was written", (_, text) => {
    expect(sql("as_written", text).text).toBe(text);
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { sql } from "../../src/store/database.ts";
import { boundedJson } from "../../src/store/rows/audit.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world?.close());

const INSERT = sql(
  "test_event",
  "insert into audit_event (tenant_id, actor, action, subject) values ($1, 'ann', 'test.event', 'x')",
);
const events = async () => (await world.admin.query("select id, actor from audit_event order by id")).rows;

/** Each a transaction of its own, over the application's own connections. */
describe("an audit event, for the application's own role", () => {
  beforeEach(() => world.db.query(INSERT, [world.tenantId]));

  it.each([
    ["update", "update audit_event set actor = 'eve'"],
    [
      "upsert",
      "insert into audit_event overriding system value select * from audit_event on conflict (id) do update set actor = 'eve'",
    ],
    ["delete", "delete from audit_event"],
    ["truncate", "truncate audit_event"],
    [
      "update, even by retention",
      "do $$ begin perform set_config('punctual.retention', 'on', true); update audit_event set actor = 'eve'; end $$",
    ],
  ])("refuses %s", async (_name, text) => {
    const before = await events();
    expect(before.length).toBeGreaterThan(0);
    await expect(world.db.run(text)).rejects.toThrow("audit events are append-only");
    expect(await events()).toEqual(before);
  });

  it("is deleted by who says so, in that transaction only", async () => {
    await world.db.run(`begin; select set_config('punctual.retention', 'on', true);
      delete from audit_event where id = (select min(id) from audit_event); commit`);
    await expect(world.db.run("delete from audit_event")).rejects.toThrow("append-only");
  });

  it("that does not concern a statement does not hold it up: an older sweeper finds nothing old, and goes on", async () => {
    await world.db.run("delete from audit_event where at < '2000-01-01'");
  });
});

describe("what an event says of before and after", () => {
  it("is as it is where it is short", () => {
    expect(boundedJson({ a: 1, b: [undefined], c: undefined })).toBe('{"a":1,"b":[null]}');
    expect(boundedJson(undefined)).toBeNull();
    expect(boundedJson(null)).toBe("null");
  });

  it("is bounded: a long field says how long it is, of too many the first are kept and the others counted", () => {
    const long = boundedJson({ id: 7, payload: "x".repeat(60_000), note: "why" })!;
    expect(JSON.parse(long)).toEqual({ id: 7, payload: { omittedCharacters: 60_002 }, note: "why" });
    const many = boundedJson(Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`f${n}`, "y".repeat(500)])))!;
    expect(many.length).toBeLessThan(8_400);
    const read = JSON.parse(many) as Record<string, unknown>;
    expect(read.f0).toBe("y".repeat(500));
    expect(Object.keys(read).length - 1 + Number(read.omittedFields)).toBe(200);
    expect(JSON.parse(boundedJson("z".repeat(9_000))!)).toEqual({ omittedCharacters: 9_002 });
    expect(JSON.parse(boundedJson(["z".repeat(9_000)])!)).toEqual({ omittedCharacters: 9_004 });
  });
});

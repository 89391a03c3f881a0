import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRangeCounter } from "../../src/loops/range-counter.ts";
import { createWorld, type World } from "../support/world.ts";

const signal = new AbortController().signal;
const MINUTE = 60_000;
const DAY = 86_400_000;

describe("ranges that were too long to be counted", () => {
  let world: World;
  beforeAll(async () => {
    world = await createWorld();
  });
  afterAll(() => world.close());

  const uncounted = async () =>
    Number((await world.admin.query("select count(*) as n from skip_range where instants is null")).rows[0].n);

  it("are counted by the background, in bounded passes, by whatever rule", async () => {
    const misfire = { policy: "skip", graceMs: 0, maxCatchUp: 1 } as const;
    const rules = [
      [{ kind: "cron", expression: "* * * * *", zone: "Etc/UTC" }, MINUTE],
      [{ kind: "interval", everyMs: 1000, anchorAt: 0 }, 1000],
    ] as const;
    const floor = (await world.admin.query("select floor_at from history_floor")).rows[0].floor_at as Date;
    // Most of it lies below the floor of history: a range there, and one from there to now.
    const fromAt = Math.floor(Date.now() / DAY) * DAY - 60 * DAY;
    for (const [rule] of rules) {
      const id = await world.newSchedule({ rule, misfire } as never);
      await world.admin.query("update schedule_cursor set next_run_at = $2, next_due_at = $2 where schedule_id = $1", [
        id,
        new Date(fromAt),
      ]);
      await world.materialize([id]);
    }
    expect(await uncounted()).toBe(4);
    const counter = createRangeCounter({ authority: world.authority });
    let passes = 0;
    for (let more = true; more; passes++) ({ more } = await counter.pass(signal));
    expect(passes).toBeGreaterThan(2);
    expect(await uncounted()).toBe(0);
    const { rows } = await world.admin.query(
      `select r.from_at, r.to_at, r.instants, v.definition->'rule'->>'kind' as kind
         from skip_range r join schedule_revision v using (schedule_id, revision) order by r.from_at`,
    );
    for (const { from_at, to_at, instants, kind } of rows) {
      const stepMs = kind === "cron" ? MINUTE : 1000;
      expect(Number(instants)).toBe((to_at.getTime() - from_at.getTime()) / stepMs + 1);
    }
    expect(rows.filter((row) => row.to_at < floor)).toHaveLength(2);
    expect(await counter.pass(signal)).toEqual({ did: 0, more: false });
  });

  it("are counted behind any number of ranges whose rule cannot be computed", async () => {
    const [broken, whole] = [await world.newSchedule(), await world.newSchedule()];
    await world.admin.query("update schedule_cursor set content = null where schedule_id = $1", [broken]);
    await world.admin.query(
      `update schedule_revision set content = null, definition = jsonb_set(definition::jsonb, '{rule,zone}', '"Gone/Away"')::json
        where schedule_id = $1`,
      [broken],
    );
    const insert = `insert into skip_range (schedule_id, from_at, to_at, tenant_id, revision, reason, created_at)
      select $1, t, t + interval '10 years', $2, 1, 'misfire', $3
        from generate_series(timestamptz '2001-01-01', timestamptz '2001-01-01' + $4 * interval '1 ms', '1 ms') t`;
    await world.admin.query(insert, [broken, world.tenantId, "2020-01-01", 250]);
    await world.admin.query(insert, [whole, world.tenantId, "2021-01-01", 0]);
    const counter = createRangeCounter({ authority: world.authority });
    await counter.pass(signal);
    expect(await uncounted()).toBe(252);
    await counter.pass(signal);
    expect(await uncounted()).toBe(251);
    await counter.pass(signal); // the next round begins at the front, should they have become countable
    await world.admin.query("delete from skip_range where schedule_id = $1", [broken]);
  });
});

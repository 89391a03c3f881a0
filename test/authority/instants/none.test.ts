import { afterAll, beforeAll, expect, it } from "vitest";
import { findSchedule } from "../../../src/store/reads/schedules.ts";
import { createWorld, type World } from "../../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(async () => {
  await world.check();
  await world.close();
});

it("B02 a rule whose next instant lies after its end is accepted, and finished: no error, no loop", async () => {
  const year = new Date().getUTCFullYear();
  const leap = [1, 2, 3, 4].map((n) => year + n).find((one) => new Date(one, 1, 29).getMonth() === 1)!;
  const rule = { kind: "cron", expression: "0 9 29 2 *", zone: "America/New_York" } as const;
  const id = await world.newSchedule({ rule, endAt: `${leap - 1}-12-31T00:00:00Z` });
  expect(await findSchedule(world.db, world.tenantId, id)).toMatchObject({ status: "finished", nextRunAt: null });
  expect(await world.materialize([id])).toMatchObject({ runs: 0, skips: 0, stillDue: false });
});

import { expect, test } from "vitest";
import { listRuns } from "../../src/store/reads/history.ts";
import { createWorld } from "../support/world.ts";

test("a list of runs that takes too long is given up by the server, says how to ask for less, and costs no connection", async () => {
  const world = await createWorld();
  const stranger = await world.stranger();
  await stranger.query("lock table run in access exclusive mode");
  const page = { state: "failed", order: "newest", boundAt: Date.now(), limit: 10 } as const;
  await expect(listRuns(world.db, world.tenantId, page)).rejects.toMatchObject({
    code: "busy",
    retryable: true,
    message: expect.stringContaining("from and to"),
  });
  const working = "select count(*)::int as n from pg_stat_activity where query like '%from run%' and state = 'active'";
  expect((await stranger.query(`${working} and pid <> pg_backend_pid() and datname = current_database()`))[0]).toEqual({
    n: 0,
  });
  await stranger.rollback();
  expect(await listRuns(world.db, world.tenantId, page)).toEqual({ items: [] });
  await world.close();
}, 20_000);

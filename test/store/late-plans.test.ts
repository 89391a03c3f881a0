import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createTenant } from "../../src/authority/tenants/create-tenant.ts";
import { tellLateRuns } from "../../src/authority/webhooks/due.ts";
import { createLateRunTeller } from "../../src/loops/late-runs.ts";
import { TELL_WAITING } from "../../src/store/rows/webhooks/births.ts";
import { listening } from "../authority/webhooks/scenes.ts";
import { createWorld, type World } from "../support/world.ts";

async function newWorld(): Promise<World> {
  const world = await createWorld();
  onTestFinished(() => world.close());
  return world;
}

/** Runs that should have started so long ago, and wait. */
async function waiting(world: World, tenantId: string, many: number, agoMs: number, heldBy = "none"): Promise<void> {
  await world.admin.query(
    `insert into live_run (id, scheduled_at, tenant_id, class, lane, state, guard, not_before, due_at, admitted_at,
                           budget_from, held_by)
     select id, at, $1, 'short', 1, 'queued', id, at, at, at, at, $4
       from (select gen_random_uuid() as id, clock_timestamp() - $3 * interval '1 ms' as at from generate_series(1, $2)) made`,
    [tenantId, many, agoMs, heldBy],
  );
}

async function told(world: World): Promise<Record<string, number>> {
  const { rows } = await world.admin.query("select tenant_id, count(*)::int as n from webhook_delivery group by 1");
  return Object.fromEntries(rows.map((row) => [row.tenant_id, row.n]));
}

test("a look at late runs does not look again at what was told: of thousands that wait it touches none", async () => {
  const world = await newWorld();
  const { tenantId } = world;
  for (let i = 0; i < 10; i++) await listening(world, ["run.late"], { lateAfterMs: 60_000 });
  await waiting(world, tenantId, 2_000, 3_600_000);
  const { told: first, at } = await tellLateRuns(world.authority, { most: 100_000, since: null });
  expect(first).toBe(20_000);
  await waiting(world, tenantId, 1, 90_000);
  for (const mode of ["force_custom_plan", "force_generic_plan"]) {
    const asker = new pg.Client(world.url);
    await asker.connect();
    await asker.query(`begin; set local plan_cache_mode = ${mode}`);
    const { rows } = await asker.query({
      name: mode,
      text: `explain (analyze, buffers) ${TELL_WAITING}`,
      values: [500, new Date(at - 60_000)],
    });
    await asker.query("rollback");
    await asker.end();
    const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
    // One run became late meanwhile: each endpoint looks for it once. Beyond that the tenant's runs are read, and no more.
    const looks = [...plan.matchAll(/webhook_delivery_once.*\(actual .* loops=(\d+)\)/g)].map((one) => Number(one[1]));
    expect(looks, plan).toEqual([10]);
    expect(Number(/Buffers: shared hit=(\d+)/.exec(plan)![1]), plan).toBeLessThan(600);
  }
  expect((await tellLateRuns(world.authority, { most: 500, since: at - 60_000 })).told).toBe(10);
});

test("of a tenant with many late runs and one with few, both are told by the next look", async () => {
  const world = await newWorld();
  const [many, few] = [world.tenantId, await anotherTenant(world)];
  await listening(world, ["run.late"]);
  await listening(world, ["run.late"], { tenantId: few });
  await waiting(world, many, 1_000, 600_000);
  await waiting(world, few, 3, 600_000);
  expect((await tellLateRuns(world.authority, { most: 10, since: null })).told).toBe(10);
  expect(await told(world)).toEqual({ [many]: 7, [few]: 3 });
});

test("a run that was held back, and an endpoint made since, are seen by the next look at everything", async () => {
  const world = await newWorld();
  const { tenantId, authority, admin } = world;
  await listening(world, ["run.late"]);
  await waiting(world, tenantId, 1, 600_000, "pause");
  const teller = createLateRunTeller({ authority });
  const pass = () => teller.pass(new AbortController().signal);
  expect(await pass()).toEqual({ did: 0, more: false });
  await admin.query("update live_run set held_by = 'none'");
  await listening(world, ["run.late"]);
  expect(await pass()).toEqual({ did: 0, more: false });
  await waiting(world, tenantId, 1, 61_000);
  expect(await pass()).toEqual({ did: 2, more: false });
  expect(await createLateRunTeller({ authority }).pass(new AbortController().signal)).toEqual({ did: 2, more: false });
});

async function anotherTenant({ authority }: World): Promise<string> {
  return (await createTenant(authority, { name: "another" })).tenantId;
}

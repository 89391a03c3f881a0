import { expect, onTestFinished, test } from "vitest";
import { createRetention } from "../../src/loops/retention.ts";
import { listening } from "../authority/webhooks/scenes.ts";
import { createWorld, type World } from "../support/world.ts";

const TERMS = { historyDays: 30, requestKeyDays: 7, auditDays: 400, afterwards: "drop" } as const;

/** A world that was told of things so many days ago, in their order, and of each how many days ago it was settled. */
async function told(lines: readonly { days: number; settled: number | null; times?: number }[]): Promise<World> {
  const world = await createWorld();
  onTestFinished(() => world.close());
  const endpointId = await listening(world, ["run.failed"]);
  for (const { days, settled, times = 1 } of lines) {
    await world.admin.query(
      `insert into webhook_delivery (endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, next_attempt_at, budget_from,
                                     state, settled_at)
       select $1, $2, 'run.failed', gen_random_uuid(), 1, '{}', at, at, at, case when $4::int is null then 'pending' else 'delivered' end,
              now() - $4::int * interval '1 day'
         from (select now() - $3 * interval '1 day' as at from generate_series(1, $5::int)) made`,
      [endpointId, world.tenantId, days, settled, times],
    );
  }
  return world;
}

async function daysLeft(world: World): Promise<number[]> {
  const pass = createRetention({ authority: world.authority, terms: TERMS });
  while ((await pass.pass(new AbortController().signal)).more);
  const { rows } = await world.admin.query(
    "select distinct (extract(epoch from now() - occurred_at) / 86400)::int as days from webhook_delivery order by 1 desc",
  );
  return rows.map((row) => row.days);
}

test("what webhooks were told is forgotten with the history of its time, and nothing that is still to be sent", async () => {
  const world = await told([
    { days: 50, settled: null },
    { days: 40, settled: 39 },
    { days: 31, settled: 31 },
    { days: 29, settled: 29 },
    { days: 1, settled: null },
  ]);
  expect(await daysLeft(world)).toEqual([50, 29, 1]);
});

test("what people have sent again, over and over, keeps nobody's older deliveries", async () => {
  const world = await told([
    { days: 45, settled: 0, times: 1_200 },
    { days: 44, settled: null, times: 1_200 },
    { days: 40, settled: 39, times: 10 },
  ]);
  expect(await daysLeft(world)).toEqual([44]);
});

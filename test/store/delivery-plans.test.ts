import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import type { Queryable, Statement } from "../../src/store/database.ts";
import { listDeliveries } from "../../src/store/reads/webhooks/webhooks.ts";
import { listening } from "../authority/webhooks/scenes.ts";
import { createWorld } from "../support/world.ts";

test("what a webhook was told that hears of nothing any more is not looked for among all that others heard since", async () => {
  const world = await createWorld();
  onTestFinished(() => world.close());
  const { tenantId, admin } = world;
  const silent = await listening(world, ["run.failed"]);
  const loud = await listening(world, ["run.failed"]);
  await admin.query(
    `insert into webhook_delivery (endpoint_id, tenant_id, type, run_id, n, facts, occurred_at, next_attempt_at, budget_from, state,
                                   settled_at)
     select case when i <= 6000 then $1::uuid else $2::uuid end, $3, 'run.failed', gen_random_uuid(), 1, '{}', now(), now(), now(),
            'delivered', now()
       from generate_series(1, 30000) i`,
    [silent, loud, tenantId],
  );
  await admin.query("vacuum analyze webhook_delivery");
  const asker = new pg.Client(world.url);
  await asker.connect();
  onTestFinished(() => asker.end());
  for (const mode of ["force_custom_plan", "force_generic_plan"]) {
    await asker.query(`set plan_cache_mode = ${mode}`);
    for (const page of [{ limit: 50 }, { limit: 50, state: "failed" as const }]) {
      const plan: string[] = [];
      const explaining = {
        async query({ text }: Statement, values?: readonly unknown[]) {
          const asked = { name: mode, text: `explain (analyze, buffers) ${text}`, values: [...values!] };
          for (const row of (await asker.query(asked)).rows) plan.push(row["QUERY PLAN"]);
          return [];
        },
      } as unknown as Queryable;
      await listDeliveries(explaining, tenantId, silent, page);
      // 6,000 of its own lie in some hundred blocks; those of others in five times as many, before them.
      const read = Number(/Buffers: shared hit=(\d+)/.exec(plan.join("\n"))![1]);
      expect(read, plan.join("\n")).toBeLessThan(page.state === undefined ? 60 : 250);
    }
  }
});

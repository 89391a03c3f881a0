import { randomUUID } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { findRemoteWork } from "../../src/authority/dispatch/remote.ts";
import { createWorld, definitionOf } from "../support/world.ts";

test("workers' looks for remote runs touch their tenant's rows of their jobs alone, on empty tables and full ones", async () => {
  const world = await createWorld();
  onTestFinished(() => world.close());
  const said = new Map<string, { text: string; values: unknown[] }>();
  const query = pg.Client.prototype.query;
  const heard = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const one = args[0] as { name?: string; text?: string; values?: unknown[] };
    if (one?.name !== undefined) said.set(one.name, { text: one.text!, values: one.values ?? [] });
    return (query as (...all: unknown[]) => unknown).apply(this, args);
  } as never);
  onTestFinished(() => void heard.mockRestore());

  const { tenantId, authority, admin } = world;
  const remote = definitionOf({ class: "remote", job: { kind: "remote", name: "test.mine" } });
  const scheduleId = await world.newSchedule(remote);
  const look = () => findRemoteWork(authority, [{ tenantId, jobs: ["test.mine@1", "test.other@1"], slots: 10 }], []);
  const claim = async (hints: Awaited<ReturnType<typeof look>>) =>
    claimRuns(authority, {
      claimId: randomUUID(),
      worker: "w",
      slots: { remote: 10 },
      hints,
      repeated: true,
      only: { tenantId, class: "remote" },
    });
  expect(await look()).toEqual([]);

  await admin.query("alter table outbox disable trigger outbox_names_remote_job");
  await admin.query(
    `insert into outbox (kind, tenant_id, class, lane, available_at, runs, publish_no, job)
     select 'run', case when n % 100 = 0 then $1 else md5((n % 50)::text)::uuid end,
            case when n % 2 = 0 then 'remote' else 'short' end, n % 3, now() - n * interval '1 s',
            array[gen_random_uuid()], 0, case when n % 2 = 0 then 'test.job-' || n % 40 || '@1' end
       from generate_series(1, 20000) n`,
    [tenantId],
  );
  await admin.query(
    `insert into live_run (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before, due_at,
                           admitted_at, budget_from)
     select id, now(), null, md5((n % 50)::text)::uuid, 'remote', 1, 1, 'queued', id, now(), now(), now(), now()
       from (select gen_random_uuid() as id, n from generate_series(1, 10000) n) made`,
  );
  await admin.query("alter table outbox enable trigger outbox_names_remote_job");
  await admin.query("analyze outbox; analyze live_run");

  await world.makeDue(scheduleId);
  await world.materialize([scheduleId]);
  const hints = await look();
  expect(hints.map((hint) => hint.job)).toEqual(["test.mine@1"]);
  expect((await claim(hints)).grants.length).toBe(1);

  for (const [name, index] of [
    ["remote_work_find", "outbox_remote"],
    ["grants_read_in_lane", "live_run"],
  ] as const) {
    const { text, values } = said.get(name)!;
    for (const mode of ["force_custom_plan", "force_generic_plan"]) {
      const asker = new pg.Client(world.url);
      await asker.connect();
      await asker.query(`set plan_cache_mode = ${mode}`);
      const { rows } = await asker.query({
        name: `${name} ${mode}`,
        text: `explain (analyze, buffers) ${text}`,
        values,
      });
      await asker.end();
      const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
      expect(plan, `${name} ${mode}`).toContain(index);
      expect(plan, `${name} ${mode}`).not.toMatch(/Seq Scan on (outbox|live_run)/);
      // Of 20,000 rows some dozens of pages.
      expect(Number(/Buffers: shared hit=(\d+)/.exec(plan)?.[1]), plan).toBeLessThan(100);
    }
  }
});

import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { failRuns } from "../../src/authority/attempts/fail.ts";
import { heartbeat } from "../../src/authority/attempts/heartbeat.ts";
import { releaseRuns } from "../../src/authority/attempts/release.ts";
import { publishOutbox } from "../../src/authority/dispatch/publish.ts";
import { unpublish } from "../../src/authority/dispatch/unpublish.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import { EVERY_MINUTE } from "../authority/scenes.ts";
import { createWorld, definitionOf } from "../support/world.ts";

const WALKS = `set plan_cache_mode = force_generic_plan; set enable_seqscan = off; set enable_hashjoin = off;
  set enable_mergejoin = off; set jit = off`;

test("no verb reads live runs or hints from end to end, even if they were last seen when there were none", async () => {
  const world = await createWorld();
  onTestFinished(() => world.close());
  const said = new Map<string, string>();
  const query = pg.Client.prototype.query;
  const heard = vi.spyOn(pg.Client.prototype, "query").mockImplementation(function (
    this: pg.Client,
    ...args: unknown[]
  ) {
    const one = args[0] as { name?: string; text?: string };
    if (one?.name !== undefined) said.set(one.name, one.text!);
    return (query as (...all: unknown[]) => unknown).apply(this, args);
  } as never);
  onTestFinished(() => void heard.mockRestore());

  const { tenantId, authority } = world;
  const scheduleId = await world.newSchedule({
    rule: EVERY_MINUTE,
    misfire: { policy: "all", maxCatchUp: 9 } as never,
  });
  await world.makeDue(scheduleId, 9 * 60_000);
  await world.materialize([scheduleId]);
  const other = await world.newSchedule();
  await world.makeDue(other);
  await world.materialize([other]);
  const published = await publishOutbox(authority, new Map([["short", 100]]));
  await unpublish(
    authority,
    published.rows.map((row) => ({ rowId: row.id, publishNo: row.publish_no })),
  );
  const identity = (one: { runId: string; fence: bigint; worker: string }) => ({
    runId: one.runId,
    fence: one.fence,
    worker: one.worker,
  });
  const [first, second] = await world.claimAll();
  await heartbeat(authority, [identity(first!)]);
  await releaseRuns(authority, [identity(first!)]);
  await failRuns(authority, [
    { ...identity(second!), failure: { transient: true, code: "x", message: "x", retryAfterMs: undefined } },
  ]);
  await world.makeAvailable();
  const [third] = await world.claimAll();
  expect(await world.complete(third!)).toMatchObject({ kind: "accepted" });
  const overlap = { policy: "allow" } as const;
  await reviseSchedule(authority, {
    tenantId,
    actor: "test",
    scheduleId,
    expectedRevision: 1,
    change: { definition: definitionOf({ rule: EVERY_MINUTE, overlap }) },
  });

  // Many rows that come and go: what is left in the statistics is pages without a row.
  await world.admin.query(
    `insert into outbox (kind, tenant_id, class, lane, available_at, runs, publish_no)
     select 'run', $1, 'short', 1, now(), array[gen_random_uuid()], 0 from generate_series(1, 3000)`,
    [tenantId],
  );
  await world.admin.query(
    `insert into live_run (id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before, due_at,
                           admitted_at, budget_from)
     select id, now(), $2, $1, 'short', 1, 1, 'queued', id, now(), now(), now(), now()
       from (select gen_random_uuid() as id from generate_series(1, 3000)) made`,
    [tenantId, scheduleId],
  );
  await world.admin.query("delete from outbox; delete from live_run");
  const asker = new pg.Client(world.url);
  await asker.connect();
  onTestFinished(() => asker.end());
  await asker.query(WALKS);
  expect(said.size).toBeGreaterThan(20);
  for (const how of ["truncate false", "truncate true", "full"]) {
    for (const table of ["outbox", "live_run"]) await world.admin.query(`vacuum (analyze, ${how}) ${table}`);
    const walked: string[] = [];
    for (const [name, text] of said) {
      if (!/\b(live_run|outbox)\b/.test(text) || !/^\s*(with|update|delete|select|insert)/i.test(text)) continue;
      const { rows } = await asker.query(`explain (generic_plan) ${text}`);
      const plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
      const joins = /Join Filter: [^\n]*\bid = /.test(plan);
      if (joins && /Scan using \S+ on (live_run|outbox)[^\n]*\n(?! *Index Cond)/.test(plan)) walked.push(name);
      // Item by item: each with each costs more than the verb itself.
      if (joins && /Function Scan/.test(plan)) walked.push(name + plan);
    }
    expect(walked, how).toEqual([]);
  }
});

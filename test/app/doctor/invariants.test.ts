import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { releaseRuns } from "../../../src/authority/attempts/release.ts";
import { mintId } from "../../../src/kernel/ids.ts";
import { createReconciler } from "../../../src/loops/reconciler.ts";
import { allow, bear, EVERY_MINUTE, failForGood, MINUTE, running, start } from "../../authority/scenes.ts";
import { createWorld, type World } from "../../support/world.ts";
import { callDoctor, type Doctor } from "./examined.ts";

let world: World;
let doctor: Doctor;
beforeEach(async () => {
  world = await createWorld();
  doctor = await callDoctor(world);
});
afterEach(async () => {
  await doctor.close();
  await world.close();
});

const sql = (text: string, values: unknown[] = []) => world.admin.query(text, values);

/** The sweeper's own pass, till it finds nothing more. */
async function sweep() {
  const reconciler = createReconciler({ authority: world.authority });
  for (let n = 0; n < 20 && (await reconciler.pass(new AbortController().signal)).did > 0; n++);
}

async function queued(change: Parameters<World["newSchedule"]>[0] = {}) {
  const scheduleId = await world.newSchedule(change);
  return { scheduleId, runId: await bear(world, scheduleId, MINUTE) };
}

/** A run of two attempts, waiting for its third. */
async function retrying(change: Parameters<World["newSchedule"]>[0] = {}) {
  const { grant, scheduleId } = await running(world, change);
  await releaseRuns(world.authority, [grant]);
  await world.makeAvailable();
  const again = await start(world, grant.runId);
  await releaseRuns(world.authority, [again]);
  return { scheduleId, runId: grant.runId };
}

async function succeeded(text?: string) {
  const { scheduleId, grant } = await running(world);
  expect(await world.complete(grant, text)).toEqual({ kind: "accepted" });
  return { scheduleId, runId: grant.runId };
}

/** Runs of one schedule, started and ended one after the other, each of a revision with this policy. */
async function started(...policies: readonly ("allow" | "forbid")[]) {
  const scheduleId = await world.newSchedule();
  for (const [n, policy] of policies.entries()) {
    const runId = await bear(world, scheduleId, (policies.length - n) * MINUTE);
    for (const grant of await world.claimAll()) await world.complete(grant);
    await sql(
      `insert into schedule_revision (schedule_id, revision, actor, created_at, definition, payload)
       select schedule_id, 2 + $2, actor, created_at, jsonb_set(definition::jsonb, '{overlap}', $3), payload
         from schedule_revision where schedule_id = $1 and revision = 1`,
      [scheduleId, n, { policy }],
    );
    await sql("update run set revision = 2 + $2 where id = $1", [runId, n]);
  }
}

/** The runs as they started: the nth has the fence of the start that is named. */
async function giveFences(...starts: readonly number[]) {
  const { rows } = await sql("select run_id, fence from attempt order by started_at");
  for (const [n, { run_id }] of rows.entries()) {
    const { fence } = rows[starts[n]! - 1];
    await sql("update attempt set fence = $2 where run_id = $1", [run_id, fence]);
    await sql("update run set accepted_fence = $2 where id = $1", [run_id, fence]);
  }
}

/** An effect as the tables have it before its first attempt, in it, or after it. */
async function effectOf(runId: string, state: "pending" | "sending" | "sent") {
  const id = mintId(Date.now(), 0);
  const tried = state === "pending" ? 0 : 1;
  await sql(
    `insert into effect (id, tenant_id, run_id, kind, name, action_id, request, state, attempts, fence, claim_id, lease_until,
                         first_sent_at, settled_at)
     select $1, $2, $3, 'email', 'mail', 'mail-run_' || $4, '{}', $4, $5::int,
            case when $5 = 1 then 1 end, case when $4 = 'sending' then gen_random_uuid() end,
            case when $4 = 'sending' then clock_timestamp() end, case when $5 = 1 then clock_timestamp() end,
            case when $4 = 'sent' then clock_timestamp() end`,
    [id, world.tenantId, runId, state, tried],
  );
  if (tried === 0) return;
  await sql(
    `insert into effect_attempt (effect_id, n, fence, sender, started_at, ended_at, outcome)
     select $1, 1, 1, 'a sender', clock_timestamp(), case when $2 then clock_timestamp() end, case when $2 then 'sent' end`,
    [id, state === "sent"],
  );
}

/** What is broken by hand, what the doctor calls it, and whether the sweeper mends it as the doctor says. */
const WOUNDS: { id: string; story: string; wound(): Promise<unknown>; also?: string[]; swept?: true; mend?: string }[] =
  [
    {
      id: "1-chains",
      story: "a run of the chain is gone",
      async wound() {
        const scheduleId = await world.newSchedule({ rule: EVERY_MINUTE });
        for (const ago of [3, 2, 1]) await bear(world, scheduleId, ago * MINUTE);
        for (const grant of await world.claimAll()) await world.complete(grant);
        for (const grant of await world.claimAll()) await world.complete(grant);
        await sql(
          "delete from run where id in (select id from run where state = 'succeeded' order by scheduled_at offset 1 limit 1)",
        );
      },
    },
    {
      id: "1-next-known",
      story: "an active schedule has lost its next instant",
      async wound() {
        const { scheduleId } = await succeeded();
        await sql("update schedule_cursor set next_due_at = null, next_run_at = null where schedule_id = $1", [
          scheduleId,
        ]);
      },
      swept: true,
    },
    {
      id: "1-next-known",
      story: "an active schedule knows its next instant and is never due",
      async wound() {
        const { scheduleId } = await succeeded();
        await sql("update schedule_cursor set next_due_at = null where schedule_id = $1", [scheduleId]);
      },
      swept: true,
    },
    {
      id: "1-next-known",
      story: "a schedule that goes on after completion waits for nothing",
      async wound() {
        const scheduleId = await world.newSchedule({ rule: { kind: "afterCompletion", delayMs: 1000 } } as never);
        await bear(world, scheduleId, MINUTE);
        for (const grant of await world.claimAll()) await world.complete(grant);
        await sql("delete from outbox");
        await sql("update schedule_cursor set awaits_end = false");
      },
      swept: true,
    },
    {
      id: "2-guards",
      story: "of two places one stays empty, and a run waits",
      async wound() {
        const { scheduleId } = await running(world, allow(2));
        const waits = await bear(world, scheduleId, MINUTE / 2);
        await sql("update live_run set state = 'blocked', guard = null, held_by = 'overlap' where id = $1", [waits]);
        await sql("delete from outbox");
      },
      swept: true,
    },
    {
      id: "2-guards",
      story: "a run holds a place that the schedule does not have",
      async wound() {
        await queued();
        await sql("update live_run set guard = gen_random_uuid()");
      },
    },
    {
      id: "2-guards",
      story: "a run holds a place where all run side by side",
      async wound() {
        await queued(allow());
        await sql("update live_run set guard = schedule_id");
      },
    },
    {
      id: "2-blocked-behind",
      story: "a run waits behind nobody",
      async wound() {
        const { runId } = await queued();
        await sql("update live_run set state = 'blocked', guard = null, held_by = 'overlap' where id = $1", [runId]);
        await sql("delete from outbox");
      },
      also: ["2-guards"],
      swept: true,
    },
    {
      id: "2-overtaken",
      story: "the younger of two waiting runs was let go first",
      async wound() {
        const { scheduleId, grant } = await running(world);
        const older = await bear(world, scheduleId, MINUTE / 2);
        const younger = await bear(world, scheduleId, MINUTE / 4);
        await world.complete(grant);
        await sql("update live_run set state = 'blocked', guard = null, held_by = 'overlap' where id = $1", [older]);
        await sql("update live_run set state = 'queued', guard = schedule_id where id = $1", [younger]);
        await sql("update outbox set runs = array[$1::uuid] where runs = array[$2::uuid]", [younger, older]);
      },
    },
    {
      id: "3-result-object",
      story: "a result's object is not kept as one",
      async wound() {
        await succeeded("a report");
        await sql("update object set state = 'staged'");
      },
    },
    {
      id: "3-result-object",
      story: "a result's object is another than was accepted",
      async wound() {
        await succeeded("a report");
        await sql("update object set size = size + 1");
      },
    },
    {
      id: "3-result-object",
      story: "a result's object was made by an attempt that was not accepted",
      async wound() {
        await succeeded("a report");
        await sql("update object set fence = fence - 1");
      },
    },
    {
      id: "3-result-object",
      story: "two runs name each other's objects as their results",
      async wound() {
        await succeeded("a report");
        await succeeded("a report");
        await sql("update object o set run_id = p.run_id from object p where p.id <> o.id");
      },
      also: ["3-one-result"],
    },
    {
      id: "3-result-object",
      story: "a result's object is forgotten before its time",
      async wound() {
        await succeeded("a report");
        await sql("delete from object");
      },
      mend: "update run set finished_at = clock_timestamp() - interval '2 days'",
    },
    {
      id: "3-one-result",
      story: "a run has two outputs that claim to be its result",
      async wound() {
        await succeeded("a report");
        await sql(
          `insert into object (id, tenant_id, run_id, attempt, fence, name, state, uri, version, sha256, size, media_type, granted_until)
         select gen_random_uuid(), tenant_id, run_id, attempt, fence, name, state, uri, version, sha256, size, media_type, granted_until
           from object`,
        );
      },
    },
    {
      id: "4-fences-of-run",
      story: "an older attempt has the higher fence",
      async wound() {
        await retrying(allow());
        await sql("update attempt a set fence = b.fence from attempt b where b.run_id = a.run_id and b.n = 3 - a.n");
      },
    },
    {
      id: "4-fences-of-run",
      story: "two attempts of a run had the same fence",
      async wound() {
        await retrying(allow());
        await sql("update attempt set fence = (select max(fence) from attempt)");
      },
      also: ["4-fences-of-schedule"],
    },
    {
      id: "4-fences-of-schedule",
      story: "the run that started later has the lower fence",
      async wound() {
        await started("forbid", "forbid");
        await giveFences(2, 1);
      },
    },
    {
      id: "4-fences-of-schedule",
      story: "two runs of a schedule had the same fence, though they may start in any order",
      async wound() {
        await started("allow", "allow");
        await giveFences(1, 1);
      },
    },
    {
      id: "4-fences-of-schedule",
      story: "a run started before one of a lower fence, with another between them that may start when it likes",
      async wound() {
        await started("forbid", "allow", "forbid");
        await giveFences(3, 2, 1);
      },
    },
    {
      id: "4-fences-to-come",
      story: "the fence sequence was set back, and a raised epoch mends it",
      async wound() {
        for (let n = 0; n < 3; n++) await succeeded();
        await sql("select setval('fence_seq', 1)");
      },
      mend: "update authority_epoch set epoch = epoch + 1",
    },
    {
      id: "4-fence-accepted",
      story: "a run was accepted from an attempt that was not its newest",
      async wound() {
        const { runId } = await succeeded();
        await sql("update run set accepted_fence = accepted_fence - 1 where id = $1", [runId]);
      },
    },
    {
      id: "4-fence-of-running",
      story: "a running run holds another fence than its attempt",
      async wound() {
        await running(world);
        await sql("update attempt set fence = fence - 1");
      },
    },
    {
      id: "4-fence-of-running",
      story: "a running run's attempt is said to have ended",
      async wound() {
        await running(world);
        await sql("update attempt set ended_at = clock_timestamp(), outcome = 'failed'");
      },
    },
    {
      id: "4-fence-of-running",
      story: "a running run has no attempt",
      async wound() {
        await running(world);
        await sql("delete from attempt");
      },
    },
    {
      id: "4-fence-of-running",
      story: "a retrying run's attempt is said to go on",
      async wound() {
        await retrying();
        await sql("update attempt set ended_at = null, outcome = null where n = 2");
      },
    },
    {
      id: "5-open-is-live",
      story: "an open run has lost its live row",
      async wound() {
        const { runId } = await queued();
        await sql("delete from outbox");
        await sql("delete from live_run where id = $1", [runId]);
      },
      swept: true,
    },
    {
      id: "5-live-is-open",
      story: "a run that has failed is still queued",
      async wound() {
        await queued();
        await sql("update run set state = 'failed', finished_at = clock_timestamp()");
      },
    },
    {
      id: "5-live-is-open",
      story: "a queued run is not in history",
      async wound() {
        await queued();
        await sql("delete from run");
      },
      also: ["1-chains"],
    },
    {
      id: "5-named-once",
      story: "a waiting run is named by no outbox row",
      async wound() {
        await queued();
        await sql("delete from outbox");
      },
      swept: true,
    },
    {
      id: "5-named-once",
      story: "a run that is to be tried again is named by no outbox row",
      async wound() {
        await retrying();
        await sql("delete from outbox");
      },
      swept: true,
    },
    {
      id: "5-named-once",
      story: "a waiting run is named by two outbox rows",
      async wound() {
        await queued();
        await sql(
          `insert into outbox (kind, tenant_id, class, lane, available_at, runs)
         select kind, tenant_id, class, lane, available_at, runs from outbox`,
        );
      },
    },
    {
      id: "5-older-attempts",
      story: "an attempt that was followed by another is said to go on",
      async wound() {
        await retrying();
        await sql("update attempt set ended_at = null, outcome = null where n = 1");
      },
    },
    {
      id: "5-end-awaited",
      story: "nobody has told a schedule of the end that it waits for",
      async wound() {
        const scheduleId = await world.newSchedule({ rule: { kind: "afterCompletion", delayMs: 1000 } } as never);
        await bear(world, scheduleId, MINUTE);
        for (const grant of await world.claimAll()) await world.complete(grant);
        await sql("delete from outbox where kind = 'schedule'");
      },
      swept: true,
    },
    {
      id: "6-usage",
      story: "more are counted as running than run",
      async wound() {
        await running(world);
        await sql("update usage set running = running + 1");
      },
      swept: true,
    },
    {
      id: "6-usage",
      story: "a run is running that nobody counts",
      async wound() {
        await running(world);
        await sql("delete from usage");
      },
      swept: true,
    },
    {
      id: "7-effects",
      story: "something is to be sent for a run that failed",
      async wound() {
        const { grant } = await running(world);
        await failForGood(world, grant);
        await effectOf(grant.runId, "pending");
      },
    },
    {
      id: "7-effects",
      story: "an effect tells of another object than the accepted one",
      async wound() {
        const { runId } = await succeeded("a report");
        await effectOf(runId, "pending");
        await sql("update effect set object_id = gen_random_uuid()");
      },
    },
    {
      id: "7-effects",
      story: "the action of an effect has another name than its own",
      async wound() {
        const { runId } = await succeeded();
        await effectOf(runId, "pending");
        await sql("update effect set action_id = 'another'");
      },
    },
    {
      id: "7-effect-attempts",
      story: "an effect was sent and is said to be under way still",
      async wound() {
        const { runId } = await succeeded();
        await effectOf(runId, "sent");
        await sql("update effect_attempt set ended_at = null, outcome = null");
      },
    },
    {
      id: "7-effect-attempts",
      story: "an effect counts an attempt that nobody has made",
      async wound() {
        const { runId } = await succeeded();
        await effectOf(runId, "sent");
        await sql("update effect set attempts = attempts + 1");
      },
    },
    {
      id: "7-effect-attempts",
      story: "an effect is being sent by an attempt of another fence",
      async wound() {
        const { runId } = await succeeded();
        await effectOf(runId, "sending");
        await sql("update effect_attempt set fence = fence + 1");
      },
    },
    {
      id: "7-effect-attempts",
      story: "an effect is being sent by nobody",
      async wound() {
        const { runId } = await succeeded();
        await effectOf(runId, "sending");
        await sql("delete from effect_attempt");
      },
    },
  ];

describe("what is broken in the tables", () => {
  it.each(WOUNDS)("$id: $story", async ({ id, wound, also = [], swept, mend }) => {
    await wound();
    expect((await doctor.broken()).toSorted()).toEqual([id, ...also].toSorted());
    const [told] = await doctor.look(`invariant-${id}`);
    expect(told).toMatchObject({
      status: "finding",
      consequence: expect.stringMatching(/\w/),
      todo: swept === true ? expect.stringContaining("sweeper") : expect.stringMatching(/\w/),
      rows: expect.arrayContaining([expect.anything()]),
    });
    if (swept) await sweep();
    if (mend !== undefined) await sql(mend);
    if (swept || mend !== undefined) expect(await doctor.broken()).toEqual([]);
  });

  it.each([[["allow", "allow"]], [["forbid", "allow"]], [["allow", "forbid"]]] as const)(
    "is not the order in which runs of %j start: only those that wait for each other have one",
    async (policies) => {
      await started(...policies);
      await giveFences(2, 1);
      expect(await doctor.broken()).toEqual([]);
    },
  );

  it("is nothing where all went well", async () => {
    const { runId } = await succeeded("a report");
    for (const state of ["pending", "sending", "sent"] as const) await effectOf(runId, state);
    await retrying();
    await queued(allow(2));
    expect(await doctor.broken()).toEqual([]);
  });
});

it("every invariant has a wound here", async () => {
  const ids = (await doctor.look("invariant")).map((one) => one.id.slice("invariant-".length));
  expect([...new Set(WOUNDS.map((one) => one.id))].toSorted()).toEqual(ids.toSorted());
});

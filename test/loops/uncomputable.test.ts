import { afterEach, beforeEach, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { pauseSchedule } from "../../src/authority/schedules/pause-schedule.ts";
import { resumeSchedule } from "../../src/authority/schedules/resume-schedule.ts";
import { reviseSchedule } from "../../src/authority/schedules/revise-schedule.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { history } from "../authority/scenes.ts";
import { createWorld, definitionOf, type World } from "../support/world.ts";
import { scannerOf, withClock } from "./scanning.ts";

let world: World;

beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const EVERY_SECOND = { kind: "cron", expression: "* * * * * *", seconds: true, zone: "Europe/Berlin" } as const;

const newSchedule = () =>
  world.newSchedule({
    rule: EVERY_SECOND,
    overlap: { policy: "allow" },
    misfire: { policy: "latest", graceMs: 86_400_000, maxCatchUp: 1 },
  });

/** What the processes of the next release read; those of before keep what they have read. */
async function store(scheduleId: Uuid, member: string, value: string): Promise<void> {
  await world.admin.query(
    `with c as (update schedule_cursor set content = null where schedule_id = $1)
     update schedule_revision set definition = jsonb_set(definition::jsonb, $2, $3), content = null where schedule_id = $1`,
    [scheduleId, ["rule", member], JSON.stringify(value)],
  );
}

const cursorOf = async (scheduleId: Uuid) =>
  (
    await world.admin.query(
      `select fault, next_run_at, next_due_at, last_nominal_at,
              extract(epoch from fault_retry_at - clock_timestamp())::float8 as retry_in
         from schedule_cursor where schedule_id = $1`,
      [scheduleId],
    )
  ).rows[0];

const retryNow = (scheduleId: Uuid) =>
  world.admin.query("update schedule_cursor set fault_retry_at = clock_timestamp() where schedule_id = $1", [
    scheduleId,
  ]);

/** A process that throws while it computes this one rule, as parsers have done. */
function throwingAt(zone: string, authority: Authority): Authority {
  const broken = new Proxy(
    {},
    {
      get: () => {
        throw new Error("out of the parser's range");
      },
    },
  ) as never;
  const { revisions } = authority;
  return {
    ...authority,
    revisions: {
      ...revisions,
      load: revisions.load,
      get: revisions.get,
      rule: (definition) =>
        definition.rule.kind === "cron" && definition.rule.zone === zone
          ? { ok: true, rule: broken }
          : revisions.rule(definition),
    },
  };
}

test.each([
  { trigger: "a zone that the tz data has lost", member: "zone", value: "Mars/Olympus", says: "Mars/Olympus" },
  { trigger: "an expression that an upgrade refuses", member: "expression", value: "0 0 9 * * MON-", says: "MON-" },
  {
    trigger: "a rule that throws when it is computed",
    member: "zone",
    value: "Australia/Lord_Howe",
    says: "parser's range",
  },
])(
  "B27 $trigger: two healthy schedules run on time, the bad one's known instant once, then it waits, and recovers by itself",
  async ({ member, value, says }) => {
    const [first, bad, last] = [await newSchedule(), await newSchedule(), await newSchedule()];
    await store(bad, member, value);
    const at = await world.makeDue(first, 3000);
    await world.admin.query(
      "update schedule_cursor set next_run_at = $2, next_due_at = $2 where schedule_id = any($1)",
      [[first, bad, last], new Date(at)],
    );
    const upgraded = withClock(throwingAt("Australia/Lord_Howe", world.another()));
    const scanner = scannerOf(upgraded.authority);
    await scanner.pass();

    const instants = async (id: Uuid) => (await history(world, id)).map((run) => run.scheduled_at.getTime());
    expect(await instants(bad)).toEqual([at]);
    for (const id of [first, last]) expect((await instants(id)).slice(0, 3)).toEqual([at, at + 1000, at + 2000]);
    const faulty = await cursorOf(bad);
    expect(faulty).toMatchObject({ fault: expect.stringContaining(says), next_run_at: null, next_due_at: null });
    expect(faulty.retry_in).toBeGreaterThan(55);
    expect(faulty.retry_in).toBeLessThanOrEqual(60);

    // Passes of the next seconds do the others' work and do not look at it.
    for (let second = 1; second <= 2; second++) {
      await world.passes(Date.now() + 1000);
      upgraded.set.elapsedMs += 3000;
      await scanner.pass();
    }
    const later = await cursorOf(bad);
    expect(later.retry_in).toBeLessThan(faulty.retry_in - 1);
    for (const id of [first, last]) expect((await instants(id)).length).toBeGreaterThan(4);

    // Its minute is over, and nothing has changed: another minute, no second run of the instant it had.
    await retryNow(bad);
    upgraded.set.elapsedMs += 3000;
    await scanner.pass();
    const again = await cursorOf(bad);
    expect(again).toMatchObject({ fault: faulty.fault, next_run_at: null });
    expect(again.retry_in).toBeGreaterThan(55);
    expect(await instants(bad)).toEqual([at]);

    // What it needs is back: nobody has to do anything.
    await store(bad, member, EVERY_SECOND[member as "zone"]);
    await retryNow(bad);
    await scannerOf(world.another()).pass();
    expect(await cursorOf(bad)).toMatchObject({ fault: null, retry_in: null, next_due_at: expect.any(Date) });
    const all = await instants(bad);
    expect(all.length).toBeGreaterThan(4);
    expect(all).toEqual(all.map((_, n) => at + n * 1000));
  },
);

/** A schedule whose known instant has run, and whose next is not known. */
async function lost(): Promise<Uuid> {
  const id = await newSchedule();
  await store(id, "zone", "Mars/Olympus");
  await world.makeDue(id, 2000);
  await scannerOf(world.another()).pass();
  expect(await cursorOf(id)).toMatchObject({ fault: expect.any(String), next_run_at: null });
  return id;
}

const who = (scheduleId: Uuid) => ({ tenantId: world.tenantId, actor: "test", scheduleId });

test("B27 paused while its next instant is unknown, it stays so without retries, and a resume asks again", async () => {
  const id = await lost();
  const upgraded = world.another();
  expect(await pauseSchedule(upgraded, who(id))).toMatchObject({
    kind: "paused",
    schedule: { fault: { retryAt: null } },
  });
  await scannerOf(world.another()).pass();
  expect(await history(world, id)).toHaveLength(1);
  expect(await resumeSchedule(upgraded, who(id))).toMatchObject({
    kind: "resumed",
    schedule: { status: "active", nextRunAt: null, fault: { message: expect.stringContaining("Mars/Olympus") } },
  });
  await pauseSchedule(upgraded, who(id));
  await store(id, "zone", "Europe/Berlin");
  const resumed = await resumeSchedule(world.another(), { ...who(id), misfire: "all" });
  expect(resumed).toMatchObject({ kind: "resumed", schedule: { fault: null, nextRunAt: expect.any(Number) } });
  expect((await history(world, id)).length).toBeGreaterThan(1);
});

test("B27 an edit that leaves the bad rule alone keeps the fault; one that brings a good rule ends it", async () => {
  const id = await lost();
  const upgraded = world.another();
  const edit = { ...who(id), expectedRevision: 1, change: { name: "another" } };
  expect(await reviseSchedule(upgraded, edit)).toMatchObject({
    kind: "revised",
    schedule: { status: "active", fault: { retryAt: expect.any(Number) } },
  });
  const cure = { ...who(id), expectedRevision: 2, change: { definition: definitionOf() } };
  expect(await reviseSchedule(upgraded, cure)).toMatchObject({
    kind: "revised",
    schedule: { status: "active", fault: null, nextRunAt: expect.any(Number) },
  });
});

test("a schedule that may make no further run is finished, whether its rule can be computed or not", async () => {
  const id = await world.newSchedule({ rule: EVERY_SECOND, maxRuns: 1 });
  await store(id, "zone", "Mars/Olympus");
  await world.makeDue(id, 2000);
  await scannerOf(world.another()).pass();
  expect(await cursorOf(id)).toMatchObject({ fault: null, next_run_at: null });
  const { rows } = await world.admin.query("select status from schedule where id = $1", [id]);
  expect(rows).toEqual([{ status: "finished" }]);
});

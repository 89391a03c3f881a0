import { afterAll, beforeAll, expect, test } from "vitest";
import { createWorld, type World } from "../../support/world.ts";
import { punctual } from "./punctual.ts";

type Diagnosis = { check: string; status: string; sentence: string; todo?: string; rows?: object[] };

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

async function doctor(url = world.url): Promise<{ exitCode: number | null; outcome: string; checks: Diagnosis[] }> {
  const { exitCode, out } = await punctual(["doctor", "--json"], { DATABASE_URL: url });
  return { exitCode, ...JSON.parse(out) };
}

const broken = (checks: readonly Diagnosis[]) =>
  checks
    .filter((one) => one.check.startsWith("invariant") && one.status !== "ok")
    .map((one) => one.check.slice(10, 60));

test("where nobody works, the doctor says who is missing and how to start them; the invariants hold", async () => {
  const schedule = await world.newSchedule();
  await world.makeDue(schedule);
  await world.materialize([schedule]);
  const { exitCode, outcome, checks } = await doctor();
  expect({ exitCode, outcome }).toEqual({ exitCode: 1, outcome: "findings" });
  expect(broken(checks)).toEqual([]);
  expect(checks).toContainEqual(
    expect.objectContaining({ check: "a scheduler is alive", status: "finding", todo: "start `punctual scheduler`" }),
  );
  expect(checks).toContainEqual(
    expect.objectContaining({ check: "a worker is alive for what waits", status: "finding" }),
  );
  const human = await punctual(["doctor"], { DATABASE_URL: world.url });
  expect(human.out).toMatch(/^FINDING {2}a scheduler is alive: .*\n +do: start `punctual scheduler`$/m);
});

test("invariants are told in their order", async () => {
  const { checks } = await doctor();
  const numbers = checks.flatMap(({ check }) => /^invariant (\d)/.exec(check)?.[1] ?? []);
  expect(numbers).toEqual(numbers.toSorted());
});

test("every invariant that is broken by hand is named, with the rows that break it", async () => {
  const [done, first, second] = [await world.newSchedule(), await world.newSchedule(), await world.newSchedule()];
  await world.makeDue(done);
  await world.materialize([done]);
  const grants = await world.claimAll();
  await world.complete(grants.at(-1)!, "a result");
  for (const waiting of [first, second]) await world.makeDue(waiting);
  await world.materialize([first, second]);
  expect(broken((await doctor()).checks)).toEqual([]);

  await world.admin.query("update run set prev_scheduled_at = '2001-01-01Z' where trigger = 'schedule'");
  await world.admin.query("update object set state = 'staged'");
  await world.admin.query("update attempt set fence = fence + 1");
  await world.admin.query("delete from outbox");
  await world.admin.query("update usage set running = running + 1");
  await world.admin.query("delete from live_run where schedule_id = $1", [first]);
  const { checks, exitCode } = await doctor();
  expect(exitCode).toBe(1);
  for (const name of [
    "1: nominal instants are linked to the one before, or start a chain",
    "3: a result's object is referenced and matches",
    "4: a run is accepted from its newest attempt",
    "5: an open run has one live row",
    "5: each queued or retrying run is named by exactly one outbox row",
    "6: usage is the number of running rows",
  ]) {
    const named = checks.find((one) => one.check === `invariant ${name}`);
    expect(named, name).toMatchObject({ status: "finding", rows: expect.arrayContaining([expect.anything()]) });
  }
});

test("a hole in a chain is told with what is before and after it, and what should be there", async () => {
  const schedule = await world.newSchedule({
    rule: { kind: "interval", everyMs: 3_600_000, anchorAt: 0 },
    misfire: { policy: "all", graceMs: 0, maxCatchUp: 100 },
  });
  await world.makeDue(schedule, 3 * 3_600_000);
  await world.materialize([schedule]);
  const { rows } = await world.admin.query(
    "select scheduled_at from run where schedule_id = $1 order by scheduled_at",
    [schedule],
  );
  const [before, lost, after] = rows.map((row) => (row.scheduled_at as Date).toISOString());
  await world.admin.query("update run set prev_scheduled_at = null where trigger = 'schedule'");
  await world.admin.query("delete from run where schedule_id = $1 and scheduled_at = $2", [schedule, lost]);
  const check = (await doctor()).checks.find((one) => one.check.startsWith("invariant 1"));
  expect(check).toMatchObject({
    status: "finding",
    rows: [
      {
        schedule_id: schedule,
        kind: "missing-link",
        after: before,
        before: after,
        expected: expect.stringContaining(lost!),
      },
    ],
  });
});

test("a result that is not in the store is found", async () => {
  await world.admin.query("update object set state = 'referenced', uri = 'fs:some-run/a1-f1/report'");
  const { checks } = await doctor();
  expect(checks.find((one) => one.check.startsWith("results are"))).toMatchObject({
    status: "finding",
    rows: [{ uri: "fs:some-run/a1-f1/report" }],
  });
});

test("a database that lacks migrations, or a server that is not the recorded one, is told with what to do", async () => {
  await world.admin.query("update authority_epoch set timeline = timeline + 1");
  const epoch = (await doctor()).checks.find((one) => one.check.startsWith("the server is"));
  expect(epoch).toMatchObject({ status: "finding", todo: "run `punctual recover` before work goes on" });
  await world.admin.query("delete from schema_migration");
  const { checks, exitCode } = await doctor();
  expect(exitCode).toBe(1);
  expect(checks.at(-1)).toMatchObject({ check: "the schema fits this program", todo: "run `punctual migrate`" });
});

test("what cannot be looked at is not called well: exit code 2", async () => {
  const nobody = await doctor("postgres://punctual@127.0.0.1:9/none");
  expect(nobody).toMatchObject({ exitCode: 2, outcome: "unknown", checks: [{ status: "failed" }] });
});

import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createWorld, type World } from "../../support/world.ts";
import { punctual } from "./punctual.ts";

type Diagnosis = { id: string; check: string; status: string; sentence: string; todo?: string; rows?: object[] };

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world.close());

async function doctor(
  url = world.url,
  options: string[] = [],
  env: Record<string, string> = {},
): Promise<{ exitCode: number | null; outcome: string; checks: Diagnosis[] }> {
  const { exitCode, out } = await punctual(["doctor", "--json", ...options], { DATABASE_URL: url, ...env });
  return { exitCode, ...JSON.parse(out) };
}

/** The same database, by another role or with another name. */
function urlWith(change: { user?: string; database?: string }): string {
  const url = new URL(world.url);
  if (change.user !== undefined) [url.username, url.password] = [change.user, "open"];
  if (change.database !== undefined) url.pathname = change.database;
  return url.href;
}

test("where nobody works, the doctor says who is missing and how to start them; the invariants hold", async () => {
  const schedule = await world.newSchedule();
  await world.makeDue(schedule);
  await world.materialize([schedule]);
  const { exitCode, outcome, checks } = await doctor();
  expect({ exitCode, outcome }).toEqual({ exitCode: 1, outcome: "findings" });
  expect(checks.filter((one) => one.id.startsWith("invariant") && one.status !== "ok")).toEqual([]);
  expect(checks).toContainEqual(
    expect.objectContaining({ id: "scheduler", status: "finding", todo: "start `punctual scheduler`" }),
  );
  expect(checks).toContainEqual(expect.objectContaining({ id: "workers", status: "finding" }));
  const human = await punctual(["doctor"], { DATABASE_URL: world.url });
  expect(human.out).toMatch(/^FINDING {2}a scheduler is alive: .*\n +so: .*\n +do: start `punctual scheduler`$/m);
});

describe("which checks are looked at", () => {
  test("those that --only names, by id or by how several begin", async () => {
    const promises = await doctor(world.url, ["--only", "invariant"]);
    expect(promises).toMatchObject({ exitCode: 0, outcome: "ok" });
    const numbers = promises.checks.map(({ check }) => /^invariant (\d)/.exec(check)?.[1]);
    expect(new Set(numbers)).toEqual(new Set(["1", "2", "3", "4", "5", "6", "7"]));
    expect(numbers).toEqual(numbers.toSorted());
    const some = await doctor(world.url, ["--only", "invariant-6", "scheduler"]);
    expect(some.checks.map((one) => one.id)).toEqual(["scheduler", "invariant-6-usage"]);
  });

  test("a name that is none is refused with those that are", async () => {
    const { exitCode, err } = await punctual(["doctor", "--only", "invariants"], { DATABASE_URL: world.url });
    expect(exitCode).toBe(2);
    expect(err).toMatch(/--only: found "invariants"; allowed: postgresql, .*invariant-1-chains/);
  });
});

describe("in cron, --quiet", () => {
  test("says nothing where all is well", async () => {
    const { exitCode, out, err } = await punctual(["doctor", "--quiet", "--only", "invariant"], {
      DATABASE_URL: world.url,
    });
    expect({ exitCode, out, err }).toEqual({ exitCode: 0, out: "", err: "" });
  });

  test("says only what is wrong, with a summary", async () => {
    const { exitCode, out } = await punctual(["doctor", "--quiet"], { DATABASE_URL: world.url });
    expect(exitCode).toBe(1);
    expect(out).not.toMatch(/^(ok|skipped) /m);
    expect(out).toMatch(/\d+ findings, 0 could not be checked, \d+ are well\.\n$/);
  });
});

test("Redis that does not answer is a finding, and keeps no other check waiting", async () => {
  const { checks } = await doctor(world.url, ["--only", "redis"], { REDIS_URL: "redis://127.0.0.1:9" });
  expect(checks).toMatchObject([{ id: "redis", status: "finding", sentence: "Redis does not answer" }]);
});

describe("a role", () => {
  test("that may not read is told which rights it lacks, and that is no clean bill: exit code 2", async () => {
    await world.admin.query("create role nobody_in_particular login password 'open'");
    const { exitCode, outcome, checks } = await doctor(urlWith({ user: "nobody_in_particular" }));
    expect({ exitCode, outcome }).toEqual({ exitCode: 2, outcome: "unknown" });
    expect(checks.at(-1)).toMatchObject({
      id: "schema",
      status: "failed",
      sentence: expect.stringContaining("permission denied for table schema_migration"),
      todo: expect.stringContaining("pg_read_all_data"),
    });
  });

  test("that may only read everything can examine everything", async () => {
    await world.admin.query("create role reader_of_all login password 'open' in role pg_read_all_data");
    const { checks } = await doctor(urlWith({ user: "reader_of_all" }));
    expect(checks.filter((one) => one.status === "failed")).toEqual([]);
    expect(checks.some((one) => one.id === "invariant-7-effects")).toBe(true);
  });
});

test("an empty database is told with what to do", async () => {
  await world.admin.query("create database empty_for_doctor template template0");
  try {
    const { exitCode, checks } = await doctor(urlWith({ database: "empty_for_doctor" }));
    expect(exitCode).toBe(1);
    expect(checks.at(-1)).toMatchObject({ id: "schema", status: "finding", todo: "run `punctual migrate`" });
  } finally {
    await world.admin.query("drop database empty_for_doctor with (force)");
  }
});

test("a server that is not the recorded one, a newer schema, an older one: each is told with what to do", async () => {
  await world.admin.query("update authority_epoch set timeline = timeline + 1");
  const epoch = (await doctor()).checks.find((one) => one.id === "server");
  expect(epoch).toMatchObject({ status: "finding", todo: "run `punctual recover` before work goes on" });

  await world.admin.query(
    "insert into schema_migration (name, batch, migration_time, breaking) values ('9999_later.sql', 99, now(), true)",
  );
  const newer = await doctor();
  expect(newer.exitCode).toBe(1);
  expect(newer.checks.at(-1)).toMatchObject({ id: "schema", todo: "use the program that fits the database" });

  await world.admin.query("delete from schema_migration");
  const older = await doctor();
  expect(older.exitCode).toBe(1);
  expect(older.checks.at(-1)).toMatchObject({ check: "the schema fits this program", todo: "run `punctual migrate`" });
});

test("what cannot be looked at is not called well: exit code 2", async () => {
  const nobody = await doctor("postgres://punctual@127.0.0.1:9/none");
  expect(nobody).toMatchObject({
    exitCode: 2,
    outcome: "unknown",
    checks: [{ status: "failed", todo: expect.stringContaining("DATABASE_URL") }],
  });
});

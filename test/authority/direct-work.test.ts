import { afterEach, beforeEach, expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { findDirectWork } from "../../src/authority/dispatch/direct.ts";
import { publishOutbox } from "../../src/authority/dispatch/publish.ts";
import { SlotAccounts } from "../../src/domain/dispatch/slot-accounts.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { dueSchedule } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** A tenant with so many queued runs, a row each. */
async function tenantWith(runs: number, tenantId: Uuid): Promise<Uuid> {
  const id = await dueSchedule(world.authority, world.admin, { tenantId, runs, job: "test.noop" });
  await world.materialize([id]);
  return tenantId;
}

function accountsOf(slots: number, reservedFraction = 0): SlotAccounts {
  return new SlotAccounts({ slots, reservedFraction, now: () => 0 });
}

/** Slots that free up one by one: takes a hint, claims it, and completes the run or lets it run on. */
async function serve(
  slots: number,
  after: "completes" | "runs on",
  authority: Authority = world.authority,
): Promise<{ tenants: Uuid[]; rows: bigint[] }> {
  const tenants: Uuid[] = [];
  const rows: bigint[] = [];
  const accounts = accountsOf(1_000);
  for (let turn = 0; turn < slots; turn++) {
    const { hints } = await findDirectWork(authority, "short", 1, accounts);
    for (const { tenantId, runCount } of hints) {
      accounts.charge(tenantId, runCount);
      if (after === "runs on") accounts.hold(tenantId, runCount);
    }
    tenants.push(...hints.map((hint) => hint.tenantId));
    rows.push(...hints.map((hint) => hint.rowId));
    const { grants } = await world.claim(rows.slice(-1), { slots: 1 });
    if (after === "completes") for (const grant of grants) await world.complete(grant);
  }
  return { tenants, rows };
}

const countOf = <T>(all: readonly T[], one: T) => all.filter((each) => each === one).length;

test("without Redis, quick runs of one tenant come in turn with those of another", async () => {
  const one = await tenantWith(20, world.tenantId);
  const two = await tenantWith(20, await world.newTenant("initech"));
  const { tenants } = await serve(8, "completes");
  expect(countOf(tenants, one)).toBe(4);
  expect(countOf(tenants, two)).toBe(4);
});

test("without Redis, slots that free up go to whoever holds the fewest for its weight", async () => {
  const one = await tenantWith(20, world.tenantId);
  const two = await tenantWith(20, await world.newTenant("initech"));
  await world.admin.query("insert into quota (tenant_id, class, weight) values ($1, 'short', 3)", [two]);
  const { tenants } = await serve(12, "runs on");
  expect(countOf(tenants, one)).toBe(3);
  expect(countOf(tenants, two)).toBe(9);
});

test("many slots are dealt level, and what a short backlog leaves goes to the long one", async () => {
  const long = await tenantWith(30, world.tenantId);
  const short = await tenantWith(3, await world.newTenant("initech"));
  const { hints } = await findDirectWork(world.authority, "short", 10, accountsOf(10));
  const tenants = hints.map((hint) => hint.tenantId);
  expect(countOf(tenants, short)).toBe(3);
  expect(countOf(tenants, long)).toBe(7);
});

/** An authority whose chances are evenly spread. */
function evenly(): Authority {
  let calls = 0;
  return { ...world.authority, chance: () => ((calls++ * 7) % 20) / 20 };
}

async function makeLate(rows: number): Promise<Set<bigint>> {
  const { rows: late } = await world.admin.query(
    "update outbox set lane = 2 where id in (select id from outbox order by id desc limit $1) returning id",
    [rows],
  );
  return new Set(late.map((row) => row.id));
}

test("without Redis, late work gets its twentieth of a tenant that always has other work", async () => {
  await tenantWith(60, world.tenantId);
  const late = await makeLate(5);
  const { rows } = await serve(40, "completes", evenly());
  expect(rows.filter((id) => late.has(id))).toHaveLength(2);
});

test("late work gets its twentieth of what is published, also where room comes in small pieces", async () => {
  await tenantWith(150, world.tenantId);
  const late = await makeLate(20);
  const authority = evenly();
  const first = await publishOutbox(authority, new Map());
  expect(first.rows).toHaveLength(64);
  expect(first.rows.filter((row) => late.has(row.id)).length).toBeGreaterThanOrEqual(3);
  const published: bigint[] = [];
  for (let at = 0; at < 40; at += 2) {
    const { grants } = await world.claim(first.rows.slice(at, at + 2).map((row) => row.id));
    for (const grant of grants) await world.complete(grant);
    published.push(...(await publishOutbox(authority, new Map())).rows.map((row) => row.id));
  }
  // Whatever late ones stand there already: those on time are published as if they did not.
  const standing = first.rows.slice(40).filter((row) => late.has(row.id)).length;
  expect(published.filter((id) => !late.has(id))).toHaveLength(40 + standing);
  expect(published.filter((id) => late.has(id))).toHaveLength(2);
});

test("late runs that fill the window in Redis do not keep a retry of their tenant waiting, and let no more late ones in", async () => {
  await tenantWith(100, world.tenantId);
  await makeLate(100);
  expect((await publishOutbox(world.authority, new Map())).rows).toHaveLength(64);
  expect((await publishOutbox(world.authority, new Map())).rows).toHaveLength(0);
  const { rows } = await world.admin.query(
    "update outbox set lane = 1 where id = (select max(id) from outbox where published_at is null) returning id",
  );
  const again = await publishOutbox(world.authority, new Map());
  expect(again.rows.map((row) => row.id)).toEqual([rows[0].id]);
});

import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createSchedule } from "../../../src/authority/schedules/create-schedule.ts";
import { deleteSchedule } from "../../../src/authority/schedules/delete-schedule.ts";
import { reviseSchedule } from "../../../src/authority/schedules/revise-schedule.ts";
import { setTenantQuotas } from "../../../src/authority/tenants/set-tenant-quotas.ts";
import type { Definition, Payload } from "../../../src/domain/definition.ts";
import { DEFAULT_QUOTAS } from "../../../src/domain/quotas/tenant.ts";
import { mintId } from "../../../src/kernel/ids.ts";
import { createWorld, definitionOf, type World } from "../../support/world.ts";
import { setQuotas } from "./quotas.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

type Draft = { tenantId?: string; key?: string; definition?: Record<string, unknown>; payload?: Payload };
const create = ({ tenantId = world.tenantId, key, definition = {}, payload = {} }: Draft = {}) =>
  createSchedule(world.authority, {
    tenantId,
    actor: "test",
    name: "a schedule",
    labels: {},
    definition: definitionOf(definition),
    payload,
    ...(key === undefined ? {} : { requestKey: { key, bodySha256: Buffer.alloc(32, 7) } }),
  });
const kinds = (outcomes: readonly { kind: string }[]) =>
  Object.fromEntries([...Map.groupBy(outcomes, (one) => one.kind)].map(([kind, all]) => [kind, all.length]));
const kept = async (tenantId = world.tenantId) =>
  (
    await world.admin.query("select count(*)::int as n from schedule where tenant_id = $1 and status <> 'deleted'", [
      tenantId,
    ])
  ).rows[0].n;

it("of a hundred schedules that are created together, exactly as many are taken as there may be", async () => {
  await setQuotas(world, world.tenantId, { schedules: 10 });
  const outcomes = await Promise.all(Array.from({ length: 100 }, () => create()));
  expect(kinds(outcomes)).toEqual({ created: 10, quota: 90 });
  expect(await kept()).toBe(10);
  expect(outcomes.find((one) => one.kind === "quota")).toEqual({
    kind: "quota",
    excess: { quota: "schedules", limit: 10, used: 10, retryAfterMs: 60_000 },
  });
});

it("two processes hold a tenant to one limit", async () => {
  await setQuotas(world, world.tenantId, { schedules: 5 });
  const other = world.another();
  const draft = {
    tenantId: world.tenantId,
    actor: "test",
    name: "s",
    labels: {},
    definition: definitionOf(),
    payload: {},
  };
  const outcomes = await Promise.all(
    Array.from({ length: 30 }, (_, k) => createSchedule(k % 2 === 0 ? world.authority : other, draft)),
  );
  expect(kinds(outcomes)).toEqual({ created: 5, quota: 25 });
});

it("a schedule that waited for its tenant's others begins when the wait is over, not before it", async () => {
  await setQuotas(world, world.tenantId, { schedules: 10 });
  const stranger = await world.stranger();
  await stranger.query("select 1 from tenant_quota where tenant_id = $1 for update", [world.tenantId]);
  const creating = create();
  await world.lockWaits();
  const [waited] = await stranger.query("select clock_timestamp()::text as at");
  await stranger.commit();
  expect(await creating).toMatchObject({ kind: "created" });
  const { rows } = await world.admin.query("select created_at >= $1 as after from schedule", [waited!.at]);
  expect(rows).toEqual([{ after: true }]);
});

it("a request that is repeated is neither counted again nor refused", async () => {
  await setQuotas(world, world.tenantId, { schedules: 1 });
  expect(await create({ key: "schedule:a" })).toMatchObject({ kind: "created" });
  expect(await create({ key: "schedule:b" })).toMatchObject({ kind: "quota" });
  await setQuotas(world, world.tenantId, { schedules: 0, payloadBytes: 2, minIntervalMs: 366 * 86_400_000 });
  expect(await create({ key: "schedule:a" })).toMatchObject({ kind: "repeated" });
  // What was refused has not used its key up.
  await setQuotas(world, world.tenantId, { schedules: 2 });
  expect(await create({ key: "schedule:b" })).toMatchObject({ kind: "created" });
});

it("a deleted schedule makes room, a finished one does not", async () => {
  await setQuotas(world, world.tenantId, { schedules: 1 });
  const made = await create({ definition: { endAt: "2020-01-01T00:00:00Z" } });
  expect(made).toMatchObject({ kind: "created", schedule: { status: "finished" } });
  expect(await create()).toMatchObject({ kind: "quota" });
  if (made.kind !== "created") throw new Error(made.kind);
  await deleteSchedule(world.authority, { tenantId: world.tenantId, actor: "test", scheduleId: made.schedule.id });
  expect(await create()).toMatchObject({ kind: "created" });
});

it("a lowered limit takes nothing away, and another tenant has its own", async () => {
  const other = await world.newTenant("other");
  for (let n = 0; n < 3; n++) await create();
  await setQuotas(world, world.tenantId, { schedules: 2 });
  expect(await create()).toMatchObject({ kind: "quota", excess: { limit: 2, used: 2 } });
  expect(await kept()).toBe(3);
  expect(await create({ tenantId: other })).toMatchObject({ kind: "created" });
});

const every = (everyMs: number) => ({ rule: { kind: "interval", everyMs, anchorAt: 0 } });

it("instants closer together than the quota are refused; as close as it are taken", async () => {
  await setQuotas(world, world.tenantId, { minIntervalMs: 60_000 });
  expect(await create({ definition: every(60_000) })).toMatchObject({ kind: "created" });
  expect(await create({ definition: every(59_999) })).toEqual({
    kind: "unfit",
    unfit: { quota: "minIntervalMs", limit: 60_000, found: 59_999 },
  });
  // Every day at half past two comes an hour early once a year.
  await setQuotas(world, world.tenantId, { minIntervalMs: 86_400_000 });
  const daily = { rule: { kind: "cron", expression: "0 9 * * *", zone: "America/New_York" } };
  expect(await create({ definition: daily })).toMatchObject({ kind: "unfit", unfit: { found: 23 * 3_600_000 } });
  const utc = { rule: { ...daily.rule, zone: "Etc/UTC" } };
  expect(await create({ definition: utc })).toMatchObject({ kind: "created" });
});

const revise = async (scheduleId: string, change: { definition?: Definition; payload?: Payload; name?: string }) => {
  const { rows } = await world.admin.query("select revision from schedule where id = $1", [scheduleId]);
  const who = { tenantId: world.tenantId, actor: "test", scheduleId, expectedRevision: rows[0].revision };
  return reviseSchedule(world.authority, { ...who, change });
};

it("a change is held to the quotas of today, but for what it does not touch", async () => {
  const id = await world.newSchedule({ ...definitionOf(every(1_000)), payload: { text: "x".repeat(100) } });
  await setQuotas(world, world.tenantId, { minIntervalMs: 60_000, payloadBytes: 50 });
  expect(await revise(id, { name: "renamed" })).toMatchObject({ kind: "revised" });
  expect(await revise(id, { definition: definitionOf(every(2_000)) })).toMatchObject({
    kind: "unfit",
    unfit: { quota: "minIntervalMs", found: 2_000 },
  });
  expect(await revise(id, { payload: { text: "y".repeat(100) } })).toMatchObject({
    kind: "unfit",
    unfit: { quota: "payloadBytes", limit: 50, found: 111 },
  });
  expect(await revise(id, { definition: definitionOf(every(60_000)), payload: {} })).toMatchObject({ kind: "revised" });
});

it("a payload of as many bytes as the quota is taken, one more is not", async () => {
  await setQuotas(world, world.tenantId, { payloadBytes: 20 });
  // {"t":"…"}: 8 bytes around the text, of which é has two.
  expect(await create({ payload: { t: `é${"x".repeat(10)}` } })).toMatchObject({ kind: "created" });
  expect(await create({ payload: { t: `é${"x".repeat(11)}` } })).toEqual({
    kind: "unfit",
    unfit: { quota: "payloadBytes", limit: 20, found: 21 },
  });
});

it("quotas are set by version; who says the same again is no conflict", async () => {
  const { tenantId } = world;
  const set = (expectedVersion: number, schedules: number) =>
    setTenantQuotas(world.authority, {
      tenantId,
      actor: "key_ops",
      expectedVersion,
      quotas: { ...DEFAULT_QUOTAS, schedules },
    });
  expect(await set(1, 5)).toEqual({ kind: "conflict", current: undefined });
  expect(await set(0, 5)).toMatchObject({ kind: "set", quotas: { schedules: 5, version: 1 } });
  expect(await set(0, 5)).toMatchObject({ kind: "set", quotas: { schedules: 5, version: 1 } });
  expect(await set(0, 6)).toMatchObject({ kind: "conflict", current: { schedules: 5, version: 1 } });
  expect(await set(1, 6)).toMatchObject({ kind: "set", quotas: { schedules: 6, version: 2 } });
  const { rows } = await world.admin.query(
    "select actor, subject, before, after from audit_event where action = 'tenant.set-quotas' order by id",
  );
  expect(rows).toMatchObject([
    { actor: "key_ops", subject: "tenant", before: null, after: { schedules: 5, version: 1 } },
    { before: { schedules: 5, version: 1 }, after: { schedules: 6, version: 2 } },
  ]);
  const nobody = { tenantId: mintId(0, 0), actor: "key_ops", expectedVersion: 0, quotas: DEFAULT_QUOTAS };
  expect(await setTenantQuotas(world.authority, nobody)).toEqual({ kind: "no-tenant" });
});

it("two who set the first quotas of a tenant do not both believe that they did", async () => {
  const outcomes = await Promise.all(
    Array.from({ length: 8 }, (_, k) =>
      setTenantQuotas(world.authority, {
        tenantId: world.tenantId,
        actor: randomBytes(4).toString("hex"),
        expectedVersion: 0,
        quotas: { ...DEFAULT_QUOTAS, schedules: k },
      }),
    ),
  );
  expect(kinds(outcomes)).toEqual({ set: 1, conflict: 7 });
});

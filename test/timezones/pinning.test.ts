import { afterEach, beforeEach, expect, test } from "vitest";
import { loadTzCandidate } from "../../src/app/tz-data.ts";
import { adoptTzData, SYSTEM } from "../../src/authority/timezones/adopt.ts";
import { followAdoption, pinZones } from "../../src/authority/timezones/pin-zones.ts";
import { createTzWatch } from "../../src/loops/tz-watch.ts";
import { candidateOf, olderVersion, tzVersion } from "../support/tz-versions.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(() => world.close());

const older = olderVersion("2025c");
const newer = tzVersion("2027a");
const rows = async () =>
  (await world.admin.query("select version, adopted_at is not null as adopted from tz_data order by version")).rows;

test("the first start adopts what it brought along; a release with newer data goes by the old, and offers its own", async () => {
  await pinZones(world.authority, candidateOf(older));
  const release = world.another();
  await pinZones(release, candidateOf(newer));
  expect([world.authority.tzVersion, release.tzVersion]).toEqual(["2025c", "2025c"]);
  expect(release.zones.textOf("America/Vancouver")).toBe(older.zones.textOf("America/Vancouver"));
  expect(await rows()).toEqual([
    { version: "2025c", adopted: true },
    { version: "2027a", adopted: false },
  ]);
});

test("only an installation that had schedules before it pinned has anything to look through", async () => {
  const replanned = async () =>
    (await world.admin.query("select replanned_at is not null as done from tz_data")).rows[0].done as boolean;
  await pinZones(world.authority, candidateOf(older));
  expect(await replanned()).toBe(true);
  await world.admin.query("delete from tz_data");
  await world.newSchedule();
  await pinZones(world.another(), candidateOf(older));
  expect(await replanned()).toBe(false);
});

test("of two first starts at once one adopts, and both go by it", async () => {
  const others = Array.from({ length: 4 }, () => world.another());
  await Promise.all(others.map((one, n) => pinZones(one, candidateOf(n % 2 === 0 ? older : newer))));
  expect(new Set(others.map((one) => one.tzVersion)).size).toBe(1);
  expect((await rows()).filter((row) => row.adopted)).toHaveLength(1);
});

test("a start again changes nothing", async () => {
  await pinZones(world.authority, candidateOf(older));
  const { adopted_at } = (await world.admin.query("select adopted_at from tz_data")).rows[0];
  await pinZones(world.another(), candidateOf(older));
  expect((await world.admin.query("select adopted_at from tz_data")).rows).toEqual([{ adopted_at }]);
});

test("two builds of one release are two versions, and each process goes by the bytes of the row", async () => {
  await pinZones(world.authority, candidateOf(older));
  const other = tzVersion("2025c", { "Asia/Beirut": undefined });
  const second = world.another();
  await pinZones(second, candidateOf(other));
  expect((await rows()).map((row) => row.version)).toEqual(["2025c", `2025c-${other.sha256.slice(0, 8)}`]);
  expect(second.zones.findZone("Asia/Beirut")).toBeDefined();
});

test("bytes that are not what was written stop a start with a sentence for the operator", async () => {
  await pinZones(world.authority, candidateOf(older));
  await world.admin.query("update tz_data set bytes = bytes || '\\x20'");
  const refused = pinZones(world.another(), candidateOf(newer));
  await expect(refused).rejects.toMatchObject({ code: "tz-data-corrupt", actor: "operator" });
  await expect(refused).rejects.toThrow(
    /^The bytes of version 2025c in the table tz_data .*: they hash to .*Restore that row/,
  );
});

test("bytes that are whole but no zones are refused too", async () => {
  const bytes = Buffer.from("nonsense");
  const sha256 = Buffer.from(await crypto.subtle.digest("SHA-256", bytes));
  await expect(pinZones(world.authority, { version: "x", sha256, bytes })).rejects.toMatchObject({
    code: "tz-data-corrupt",
  });
});

test("an adoption is told in the audit, noticed by a process at its next look, and refused for what is not there", async () => {
  await pinZones(world.authority, candidateOf(older));
  await pinZones(world.another(), candidateOf(newer));
  const adopt = (version: string) => adoptTzData(world.authority, { actor: "operator", version });
  expect(await adopt("2099z")).toEqual({ kind: "not-found", known: ["2025c", "2027a"] });
  expect(await adopt("2027a")).toEqual({ kind: "adopted", before: "2025c" });
  expect(await adopt("2027a")).toEqual({ kind: "already-adopted" });
  expect(world.authority.tzVersion).toBe("2025c");
  await createTzWatch(world).pass(new AbortController().signal);
  expect(world.authority.tzVersion).toBe("2027a");
  expect(await world.authority.metrics.tzInfo.get()).toMatchObject({
    values: [{ labels: { version: "2027a" }, value: 1 }],
  });
  const events = await world.admin.query("select actor, before, after from audit_event where tenant_id = $1", [SYSTEM]);
  expect(events.rows).toEqual([{ actor: "operator", before: { version: "2025c" }, after: { version: "2027a" } }]);
});

test("back to a version that was adopted before: the latest adoption counts", async () => {
  await pinZones(world.authority, candidateOf(older));
  await pinZones(world.another(), candidateOf(newer));
  for (const version of ["2027a", "2025c"]) await adoptTzData(world.authority, { actor: "operator", version });
  await followAdoption(world.authority, world.db);
  expect(world.authority.tzVersion).toBe("2025c");
});

test("a version that cannot be opened is not adopted", async () => {
  await pinZones(world.authority, candidateOf(older));
  await pinZones(world.another(), candidateOf(newer));
  await world.admin.query("update tz_data set bytes = '\\x00' where version = '2027a'");
  await expect(adoptTzData(world.authority, { actor: "operator", version: "2027a" })).rejects.toMatchObject({
    code: "tz-data-corrupt",
  });
});

test("a directory that is none is named, with what was found and what is allowed", () => {
  expect(() => loadTzCandidate("/nowhere")).toThrow(/^PUNCTUAL_ZONEINFO: found "\/nowhere"; .*allowed: a directory/);
});

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadBundledTzData } from "../../../src/app/tz-data.ts";
import { pinZones } from "../../../src/authority/timezones/pin-zones.ts";
import { showId } from "../../../src/kernel/ids.ts";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { adoptBehindTheBack, candidateOf } from "../../support/tz-versions.ts";
import { createWorld, type World } from "../../support/world.ts";
import * as scene from "../../timezones/scenes.ts";
import { punctual } from "./punctual.ts";

const bundled = loadBundledTzData().zones.version;

let world: World;
beforeEach(async () => {
  world = await createWorld();
  await scene.startUnder(world, scene.behind, { ...scene.ahead, zones: { ...scene.ahead.zones, version: "2026z" } });
});
afterEach(() => world.close());

const calendar = (...args: string[]) => punctual(["calendar", ...args], { DATABASE_URL: world.url });
const adopted = async () =>
  (await world.admin.query("select version from tz_data where adopted_at is not null order by adopted_at desc limit 1"))
    .rows[0].version;

async function twoSchedulesAndOneElsewhere(): Promise<string> {
  const nine = { kind: "cron" as const, expression: "0 9 * * *", zone: scene.VANCOUVER };
  const first = await world.newSchedule({ rule: nine });
  await world.newSchedule({ rule: nine });
  await world.newSchedule({ rule: { ...nine, zone: "Europe/Berlin" } });
  return showId("sch", first);
}

test("tzdb tells what is adopted, what could be, and what the program brings", async () => {
  const { exitCode, out } = await calendar("tzdb", "--json");
  expect(exitCode).toBe(0);
  const told = JSON.parse(out);
  expect(told).toMatchObject({ adopted: "2025c", behind: 0, brings: { version: bundled } });
  expect(told.versions).toEqual([
    {
      version: "2025c",
      state: "adopted",
      sha256: scene.behind.sha256,
      adoptedAt: expect.stringMatching(/Z$/),
      // A new installation had nothing to look through.
      replannedAt: expect.stringMatching(/Z$/),
    },
    { version: "2026z", state: "candidate", sha256: scene.ahead.sha256, adoptedAt: null, replannedAt: null },
  ]);
  await world.admin.query("update tz_data set replanned_at = null where version = '2025c'");
  expect((await calendar("tzdb")).out).toMatch(
    /^2025c +adopted +\d{4}-.* being looked at: 0 of the next 10,000 to move/m,
  );
});

test("tzdb says of broken bytes that they are", async () => {
  await world.admin.query("update tz_data set bytes = '\\x00' where version = '2025c'");
  const { exitCode, out } = await calendar("tzdb");
  expect(exitCode).toBe(0);
  expect(out).toMatch(/^2025c +adopted, broken/m);
});

type Move = { before: { at: string; local: string } | null; after: { at: string; local: string } | null };

test("shadow lists what would move before anything does: rules, schedules, instants in UTC and by the wall", async () => {
  const example = await twoSchedulesAndOneElsewhere();
  const { exitCode, out } = await calendar("shadow", "--to", "2026z", "--json");
  expect(exitCode).toBe(1);
  const { before, after, moved } = JSON.parse(out);
  expect([before, after, moved.length]).toEqual(["2025c", "2026z", 1]);
  expect(moved[0]).toMatchObject({ schedules: 2, example, rule: { expression: "0 9 * * *", zone: scene.VANCOUVER } });
  expect(moved[0].moves.length).toBeGreaterThanOrEqual(30);
  // Where the month begins or ends between nine o'clock before and after, that one instant has no counterpart.
  const pairs = moved[0].moves.filter((move: Move) => move.before !== null && move.after !== null);
  expect(moved[0].moves.length - pairs.length).toBeLessThanOrEqual(2);
  for (const move of pairs) {
    expect(move.before.local).toMatch(/T09:00:00-08:00\[America\/Vancouver\]$/);
    expect(move.after.local).toMatch(/T09:00:00-07:00\[America\/Vancouver\]$/);
    expect(Date.parse(move.before.at) - Date.parse(move.after.at)).toBe(scene.HOUR);
  }
  const human = await calendar("shadow", "--to", "2026z");
  expect(human.out).toContain(`2 schedules such as ${example}`);
  expect(human.out).toMatch(/^In the next month \d+ runs of 2 schedules move \(1 rule\)\.$/m);
  expect(await adopted()).toBe("2025c");
});

test("shadow says no where nothing moves, and names what it does not know", async () => {
  await world.newSchedule({ rule: { kind: "cron", expression: "0 9 * * *", zone: "Europe/Berlin" } });
  expect(await calendar("shadow", "--to", "2026z")).toMatchObject({
    exitCode: 0,
    out: "Nothing moves in the next month.\n",
  });
  const unknown = await calendar("shadow", "--to", "2099a");
  expect(unknown).toMatchObject({
    exitCode: 2,
    err: expect.stringContaining("--to: 2099a is not known; allowed: 2025c, 2026z"),
  });
  const nowhere = await calendar("shadow", "--zoneinfo", "/nowhere");
  expect(nowhere).toMatchObject({ exitCode: 2, err: expect.stringContaining('--zoneinfo: found "/nowhere"') });
  const both = await calendar("shadow", "--to", "2026z", "--write", "x");
  expect(both).toMatchObject({ exitCode: 2, err: expect.stringContaining("one of them at a time") });
});

test("what one release writes another compares: rule by rule, also what only one of them accepts", async () => {
  await twoSchedulesAndOneElsewhere();
  await world.newSchedule({ rule: { kind: "interval", everyMs: 60_000, anchorAt: 0 } });
  const folder = makeTemporaryFolder("punctual-shadow-");
  const file = join(folder, "before.jsonl");
  try {
    expect((await calendar("shadow", "--write", file)).out).toMatch(
      /^3 rules under 2025c, as release .* computes them: /,
    );
    expect(await calendar("shadow", "--against", file)).toMatchObject({
      exitCode: 0,
      out: "Nothing moves in the next month.\n",
    });
    const [head, ...lines] = readFileSync(file, "utf8").trimEnd().split("\n");
    // Another release would have read Berlin's rule otherwise, and refused Vancouver's.
    const other = lines.map((line) => {
      const one = JSON.parse(line);
      if (one.rule.zone === "Europe/Berlin")
        return JSON.stringify({ ...one, rule: { ...one.rule, expression: "30 9 * * *" } });
      if (one.rule.zone === scene.VANCOUVER) return JSON.stringify({ ...one, instants: undefined, fault: "refused" });
      return line;
    });
    writeFileSync(file, [head, ...other].join("\n"));
    const { exitCode, out } = await calendar("shadow", "--against", file, "--json");
    expect(exitCode).toBe(1);
    const moved = JSON.parse(out).moved.toSorted(
      (a: { schedules: number }, b: { schedules: number }) => a.schedules - b.schedules,
    );
    expect(moved[0].moves[0].after.local).toContain("T09:30:00");
    expect(moved[1]).toMatchObject({ schedules: 2, moves: [], fault: { before: "refused", after: null } });
    writeFileSync(file, "nonsense\n");
    expect((await calendar("shadow", "--against", file)).err).toContain(`${file} line 1: is no JSON`);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("adopt shows what moves and does it only when told so; nothing has to be restarted", async () => {
  await twoSchedulesAndOneElsewhere();
  const asked = await calendar("adopt", "2026z");
  expect(asked.exitCode).toBe(1);
  expect(asked.out).toContain("runs of 2 schedules move (1 rule)");
  expect(asked.err).toContain("Nothing was adopted. To do it: punctual calendar adopt 2026z --yes");
  expect(await adopted()).toBe("2025c");
  const done = await calendar("adopt", "2026z", "--yes");
  expect(done).toMatchObject({ exitCode: 0, out: expect.stringContaining("2026z is adopted in place of 2025c.") });
  expect(await adopted()).toBe("2026z");
  const again = await calendar("adopt", "2026z");
  expect(again).toMatchObject({ exitCode: 0, out: expect.stringContaining("2026z is adopted already.") });
  const events = await world.admin.query("select action, subject, actor from audit_event where action like 'tz%'");
  expect(events.rows).toEqual([
    { action: "tz-data.adopt", subject: "2026z", actor: expect.stringMatching(/^operator:/) },
  ]);
});

test("adopt without anything that moves asks nothing, and takes what the program brings", async () => {
  const { exitCode, out } = await calendar("adopt", bundled, "--json");
  expect(exitCode).toBe(0);
  expect(JSON.parse(out)).toEqual({ outcome: "adopted", version: bundled, moved: [] });
  expect(await adopted()).toBe(bundled);
});

test("adopt is the way out of broken data", async () => {
  await world.admin.query("update tz_data set bytes = '\\x00' where version = '2025c'");
  expect(await calendar("adopt", "2026z")).toMatchObject({ exitCode: 1, err: expect.stringContaining("is broken") });
  expect((await calendar("adopt", "2026z", "--yes")).exitCode).toBe(0);
  const fresh = world.another();
  await pinZones(fresh, candidateOf(scene.behind));
  expect(fresh.tzVersion).toBe("2026z");
});

test("the doctor tells of broken bytes and of a walk that does not end", async () => {
  const diagnosis = async () => {
    const { out } = await punctual(["doctor", "--json"], { DATABASE_URL: world.url });
    return JSON.parse(out).checks.find((one: { check: string }) => one.check === "the tz database is whole");
  };
  expect(await diagnosis()).toMatchObject({ status: "ok", sentence: expect.stringContaining("2025c is adopted") });
  await adoptBehindTheBack(world, "2026z");
  await world.admin.query(
    "update tz_data set adopted_at = clock_timestamp() - interval '3 hours' where version = '2025c'",
  );
  await world.admin.query(
    "update tz_data set adopted_at = clock_timestamp() - interval '2 hours' where version = '2026z'",
  );
  expect(await diagnosis()).toMatchObject({
    status: "finding",
    sentence: expect.stringContaining("2026z was adopted"),
  });
  await world.admin.query("update tz_data set bytes = '\\x00' where version = '2026z'");
  expect(await diagnosis()).toMatchObject({
    status: "finding",
    sentence: expect.stringContaining("are not those that were written"),
  });
});

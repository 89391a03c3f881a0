import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startUp, type Up } from "./punctual.ts";

let up: Up;
beforeAll(async () => {
  up = await startUp();
});
afterAll(async () => {
  await up.stop();
  up.remove();
});

function file(name: string, content: unknown): string {
  const path = join(up.directory, name);
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

test("a calendar is made from a file, shown, changed, listed and deleted", async () => {
  expect((await up.run("calendars", "list")).err).toBe("No calendars here.\n");
  const path = file("company-holidays.json", {
    yearly: [{ date: "12-25", name: "Christmas" }],
    ranges: [{ from: "2026-12-28", to: "2026-12-31" }],
  });
  const made = await up.run("calendars", "put", path);
  expect([made.err, made.out]).toEqual(["", "company-holidays is at version 1\n"]);
  const shown = await up.run("calendars", "get", "company-holidays");
  expect(shown.out).toMatch(/^weekend +saturday, sunday$/m);
  expect(shown.out).toMatch(/^2026-12-28 to 2026-12-31$/m);
  expect(shown.out).toMatch(/^every 12-25 +Christmas$/m);

  // What was printed can be edited and put back.
  const printed = JSON.parse((await up.run("calendars", "get", "company-holidays", "--json")).out);
  const edited = file("edited.json", { ...printed, weekend: [] });
  expect((await up.run("calendars", "put", edited)).out).toBe("company-holidays is at version 2\n");
  const stale = await up.run("calendars", "put", file("stale.json", { ...printed, dates: [{ date: "2026-01-01" }] }));
  expect(stale.exitCode).toBe(1);
  expect(stale.err).toBe("punctual: expectedVersion: found 1; the calendar is at version 2\n");
  expect((await up.run("calendars", "get", "company-holidays@1")).out).toMatch(/^version +1$/m);
  expect((await up.run("calendars", "list")).out).toMatch(/^company-holidays +2 +2 +\d{4}-/m);

  expect((await up.run("calendars", "delete", "company-holidays")).out).toBe(
    "Deleted company-holidays, which was at version 2\n",
  );
  expect((await up.run("calendars", "get", "company-holidays")).err).toBe(
    'punctual: There is no calendar "company-holidays"\n',
  );
});

test("a schedule is created with calendars, and keeps them from being deleted", async () => {
  await up.run("calendars", "put", file("first.json", {}));
  const create = (calendar: string) =>
    up.run(
      ...["schedules", "create", "--name", "Sales", "--cron", "0 9 1 * *", "--tz", "Europe/Berlin"],
      ...["--job", "report.run-summary@1", "--schedule-key", "monthly", "--calendar", calendar],
    );
  expect((await create("first")).err).toContain("allowed: name=exclude or name=shift");
  expect((await create("frist=shift")).err).toBe(
    'punctual: calendars[0].name (--calendar): there is no such calendar; found: "frist"; allowed: first (did you mean "first"?)\n',
  );
  expect((await create("first=shift")).exitCode).toBe(0);
  expect((await up.run("schedules", "get", "key:monthly")).out).toMatch(/^calendars +first=shift$/m);
  expect((await up.run("calendars", "delete", "first")).err).toContain("Schedules that are not deleted use");
});

test("a file that cannot be a calendar is refused in a sentence", async () => {
  const noJson = await up.run("calendars", "put", file("broken.json", "{"));
  expect([noJson.exitCode, noJson.err]).toEqual([2, expect.stringContaining("broken.json is not JSON")]);
  expect((await up.run("calendars", "put", file("list.json", "[]"))).err).toContain("is no JSON object");
  expect((await up.run("calendars", "put", join(up.directory, "absent.json"))).exitCode).toBe(2);
  const wrong = await up.run("calendars", "put", file("wrong.json", { dates: [{ date: "2026-02-30" }], weekends: [] }));
  expect(wrong.exitCode).toBe(1);
  expect(wrong.err).toContain('dates[0].date: must be a date that exists, such as 2026-12-25; found: "2026-02-30"');
  expect(wrong.err).toContain('weekends: is not a known field; found: "weekends"');
});

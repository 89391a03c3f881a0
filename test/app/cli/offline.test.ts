import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeTemporaryFolder } from "../../support/temporary-folder.ts";
import { punctual } from "./punctual.ts";

const folder = makeTemporaryFolder("punctual-offline-");
/** Servers that are named and not there, and a machine that lives elsewhere: nothing here may care. */
const nowhere = {
  PUNCTUAL_DIR: folder,
  DATABASE_URL: "postgres://nobody@127.0.0.1:1/none",
  REDIS_URL: "redis://127.0.0.1:1",
  TZ: "Australia/Lord_Howe",
};
const NEW_YORK = ["--tz", "America/New_York"];

test("a preview without any server says what, when, in whose time, and what touched it", async () => {
  const asked = ["preview", "30 2 * * *", ...NEW_YORK, "--from", "2026-03-07T00:00:00Z", "--count", "2"];
  const { out, err, exitCode } = await punctual(asked, nowhere);
  expect([exitCode, err]).toEqual([0, ""]);
  expect(out.split("\n")).toEqual([
    "At 02:30, America/New_York time",
    "",
    "LOCAL                OFFSET  UTC                   TOUCHED BY",
    "2026-03-07 02:30:00  -05:00  2026-03-07 07:30:00Z",
    "2026-03-08 03:00:00  -04:00  2026-03-08 07:00:00Z  02:30 does not exist that day; runs at 03:00, the first instant after the gap; clocks changed: -05:00 → -04:00",
    expect.stringMatching(/^By tz database \d{4}[a-z]+$/),
    "",
  ]);
});

test("a preview shows what is left out and what people may not expect", async () => {
  const asked = ["preview", "*/7 2 */2 * 0", ...NEW_YORK, "--from", "2026-03-08T00:00:00Z", "--count", "1"];
  const { out } = await punctual(asked, nowhere);
  expect(out).toMatch(/^Warning: Both day fields must match/m);
  expect(out).toMatch(/^Warning: \*\/7 is not evenly spaced/m);
  const skipping = await punctual(
    ["preview", "30 2 * * *", ...NEW_YORK, "--gap", "skip", "--from", "2026-03-07T12:00:00Z", "--count", "1"],
    nowhere,
  );
  expect(skipping.out).toContain("Left out: 02:30 does not exist on 2026-03-08, and is left out, as gap: skip asks\n");
});

test("--json prints what the API's preview has, one line; six fields need --seconds", async () => {
  const { out } = await punctual(
    ["preview", "*/10 * * * * *", "--seconds", "--json", "--from", "2026-03-07T00:00:00Z", "--count", "2"],
    nowhere,
  );
  expect(out.trim().split("\n")).toHaveLength(1);
  expect(JSON.parse(out)).toMatchObject({
    description: "Every 10 seconds, UTC time",
    warnings: [],
    instants: [{ at: "2026-03-07T00:00:10Z", local: "2026-03-07T00:00:10+00:00[UTC]", labels: [] }, {}],
    notes: [],
    tzVersion: expect.any(String),
  });
  const five = await punctual(["preview", "*/10 * * * * *"], nowhere);
  expect(five.err).toMatch(/instead of 5.*\(set `--seconds` if the first field means seconds\)$/m);
});

test("a rule that cannot be is refused as the API would refuse it", async () => {
  const named = await punctual(["preview", "0 9 * * Monday", ...NEW_YORK], nowhere);
  expect(named).toMatchObject({ exitCode: 1, out: "" });
  expect(named.err).toMatch(/^punctual: day-of-week: .*; found: "MONDAY"; allowed: .* \(did you mean "MON"\?\)\n$/);
  const zone = await punctual(["preview", "0 9 * * *", "--tz", "America/New_Yrk", "--json"], nowhere);
  expect(JSON.parse(zone.err)).toMatchObject({
    error: { code: "invalid-rule", errors: [{ field: "zone", didYouMean: "America/New_York" }] },
  });
  for (const [option, value] of [
    ["--from", "yesterday"],
    ["--count", "0"],
    ["--gap", "both"],
  ] as const) {
    const { err, exitCode } = await punctual(["preview", "0 9 * * *", option, value], nowhere);
    expect([exitCode, err]).toEqual([2, expect.stringMatching(new RegExp(`^punctual: ${option}: found "${value}"`))]);
  }
});

test.each(["cron.jsonl", "cron-syntax.jsonl"])("calendar check finds nothing wrong in %s", async (file) => {
  const path = join(import.meta.dirname, "..", "..", "vectors", file);
  const { out, exitCode } = await punctual(["calendar", "check", path], nowhere);
  expect(out).toMatch(/^\d{2,} passed, 0 failed\n$/);
  expect(exitCode).toBe(0);
});

test("calendar check names every difference by its line, and a line that cannot be read", async () => {
  const daily = { expr: "30 2 * * *", tz: "America/New_York", from: "2026-03-08T00:00:00Z", count: 1 };
  const right = ["2026-03-08T07:00:00Z"];
  const lines = [
    JSON.stringify({ id: "good", ...daily, expected: right, expectedShift: ["2026-03-08T07:30:00Z"] }),
    "",
    JSON.stringify({ id: "bad", ...daily, expected: right, expectedShift: right, expectedSkip: [] }),
    '{"expr": "0 9 * * *"',
    JSON.stringify({ ...daily, count: "one", expected: right }),
    JSON.stringify({ expr: "0 25 * * *", tz: "UTC", verdict: "accept" }),
    JSON.stringify({ expr: "0 0 9 * * *", tz: "UTC", verdict: "accept" }),
  ];
  const path = join(folder, "vectors.jsonl");
  writeFileSync(path, lines.join("\n"));
  const { out, exitCode } = await punctual(["calendar", "check", path], nowhere);
  expect(exitCode).toBe(1);
  expect(out.trimEnd().split("\n")).toEqual([
    'line 3 (bad): "30 2 * * *" in "America/New_York": expectedShift[0]: expected 2026-03-08T07:00:00.000Z, found 2026-03-08T07:30:00.000Z',
    'line 3 (bad): "30 2 * * *" in "America/New_York": expectedSkip[0]: expected none, found 2026-03-09T06:30:00.000Z',
    expect.stringMatching(/^line 4: is not JSON/),
    "line 5: count: is no whole number",
    'line 6: "0 25 * * *" in "UTC": expected accept, found reject (hour: "25"; 25 is outside 0-23.)',
    "2 passed, 4 failed",
  ]);
  const json = await punctual(["calendar", "check", path, "--json"], nowhere);
  expect(json.exitCode).toBe(1);
  expect(JSON.parse(json.out)).toMatchObject({ passed: 2, failed: 4, failures: [{ line: 3, id: "bad" }, {}, {}, {}] });
  const missing = await punctual(["calendar", "check", join(folder, "none.jsonl")], nowhere);
  expect(missing).toMatchObject({ exitCode: 2, err: expect.stringContaining("cannot be read") });
});

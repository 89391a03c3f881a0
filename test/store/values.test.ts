import { expect, test } from "vitest";
import { BadItem, encodeArray } from "../../src/store/arrays.ts";
import { findRun } from "../../src/store/reads/runs.ts";
import { instantText, parseInstant } from "../../src/store/values.ts";

const FIRST_AT = Date.parse("0001-01-01T00:00:00Z");
const LAST_AT = Date.parse("9999-12-31T23:59:59.999Z");

test("the first and the last instant that can be kept are kept", () => {
  expect(instantText(FIRST_AT)).toBe("0001-01-01T00:00:00.000Z");
  expect(instantText(LAST_AT)).toBe("9999-12-31T23:59:59.999Z");
  for (const at of [FIRST_AT, LAST_AT]) {
    expect(parseInstant(instantText(at).replace("T", " ").replace("Z", "+00"))).toBe(at);
    expect(encodeArray("timestamptz", [at])).toHaveLength(32);
  }
});

test("instants of other years are the caller's error alone, and one bad item in a batch", () => {
  for (const at of [FIRST_AT - 1, LAST_AT + 1, Date.parse("0000-06-01T00:00:00Z"), Number.NaN, -Infinity]) {
    expect(() => instantText(at)).toThrow(expect.objectContaining({ actor: "caller", code: "invalid-request" }));
    expect(() => encodeArray("timestamptz", [at])).toThrow(BadItem);
  }
});

test("a run's id from after the year 9999 names no run, without asking", async () => {
  const nobody = { query: () => Promise.reject(new Error("asked")) };
  const id = "ffffffff-ffff-7000-8000-000000000000";
  expect(await findRun(nobody, id, id)).toBeUndefined();
});

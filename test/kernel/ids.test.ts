import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketOf, deriveRunId, digestOf, instantOf, mintId, readId, showId } from "../../src/kernel/ids.ts";

/** Of any instant, and of one that an id may carry: most of the numbers an id can hold lie after the year 9999. */
const anyUuid = fc.oneof(
  fc.uuid({ version: [4, 8] }),
  fc.integer({ min: 0, max: Date.UTC(10_000, 0, 1) - 1 }).map((at) => mintId(at, 0)),
);

test("an id as people see it is its 128 bits in Crockford base32, and reads back", () => {
  fc.assert(
    fc.property(anyUuid, (id) => {
      const shown = showId("run", id);
      const value = BigInt(`0x${id.replaceAll("-", "")}`);
      const digits = [...shown.slice(4)].map((digit) => BigInt("0123456789abcdefghjkmnpqrstvwxyz".indexOf(digit)));
      expect(digits.reduce((sum, digit) => sum * 32n + digit, 0n)).toBe(value);
      expect(readId("run", shown)).toBe(instantOf(id) < Date.UTC(10_000, 0, 1) ? id : undefined);
    }),
  );
});

test("a run's id carries its instant and its schedule's bucket, and is the same for ever", () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), fc.integer({ min: 0, max: 1023 }), (at, bucket) => {
      const schedule = mintId(at, bucket);
      const run = deriveRunId(schedule, "schedule", at);
      expect(run).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      expect([instantOf(run), bucketOf(run)]).toEqual([at, bucket]);
      expect(deriveRunId(schedule, "schedule", at)).toBe(run);
    }),
  );
  expect(deriveRunId("018bcfe5-6800-8155-8000-000000000000", "schedule", 1_700_000_000_000)).toBe(
    "018bcfe5-6800-8d55-a6ec-05a202a97842",
  );
});

test("a digest is the first half of the text's SHA-256", () => {
  expect(digestOf("abc")).toBe("ba7816bf-8f01-cfea-4141-40de5dae2223");
});

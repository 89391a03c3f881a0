import fc from "fast-check";
import { expect, it } from "vitest";
import { STORABLE_LIMIT, storableText } from "../../src/kernel/storable.ts";

it("leaves ordinary text, emoji included, as it is", () => {
  expect(storableText("disk full: 📈 naïve\n\tat line 3")).toBe("disk full: 📈 naïve\n\tat line 3");
});

it("replaces NUL and lone surrogates, which PostgreSQL refuses", () => {
  expect(storableText("a\0b\uD800c\uDC00")).toBe("a\uFFFDb\uFFFDc\uFFFD");
});

it("cuts a long text visibly and never through a character", () => {
  expect(storableText("📈".repeat(10), 11)).toBe(`${"📈".repeat(4)} …`);
  expect(storableText("x".repeat(1_000_000))).toHaveLength(STORABLE_LIMIT);
});

it("makes any text storable, and a storable text stays the same", () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 60 }),
      fc.integer({ min: 4, max: 50 }),
      (units, limit) => {
        const once = storableText(String.fromCharCode(...units), limit);
        expect(once.length).toBeLessThanOrEqual(limit);
        expect(once.isWellFormed()).toBe(true);
        expect(once).not.toContain("\0");
        expect(storableText(once, limit)).toBe(once);
      },
    ),
    { numRuns: 500 },
  );
});

import { describe, expect, it } from "vitest";
import { epochOf, fenceOf } from "../../src/domain/fence.ts";

describe("fences", () => {
  it("grow with the sequence, and with the epoch whatever the sequence", () => {
    expect(fenceOf(1, 5n)).toBeGreaterThan(fenceOf(1, 4n));
    expect(fenceOf(2, 1n)).toBeGreaterThan(fenceOf(1, 2n ** 40n - 1n));
    expect(epochOf(fenceOf(4_194_303, 2n ** 40n - 1n))).toBe(4_194_303);
    expect(fenceOf(4_194_303, 2n ** 40n - 1n)).toBeLessThan(2n ** 63n);
  });
});

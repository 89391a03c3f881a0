import { describe, expect, it } from "vitest";
import { epochOf, fenceOf, nextEpoch } from "../../src/domain/fence.ts";

describe("fences", () => {
  it("grow with the sequence, and with the epoch whatever the sequence", () => {
    expect(fenceOf(1, 5n)).toBeGreaterThan(fenceOf(1, 4n));
    expect(fenceOf(2, 1n)).toBeGreaterThan(fenceOf(1, 2n ** 40n - 1n));
    expect(epochOf(fenceOf(4_194_303, 2n ** 40n - 1n))).toBe(4_194_303);
    expect(fenceOf(4_194_303, 2n ** 40n - 1n)).toBeLessThan(2n ** 63n);
  });

  it("of two recoveries of one backup differ, though neither knows of the other", () => {
    const at = Date.UTC(2026, 10, 30, 4);
    expect(nextEpoch(1, at + 600_000)).toBeGreaterThan(nextEpoch(1, at));
    expect(nextEpoch(nextEpoch(1, at), at)).toBe(nextEpoch(1, at) + 1);
    expect(nextEpoch(7, Date.UTC(2020, 0, 1))).toBe(8);
    expect(nextEpoch(1, Date.UTC(2104, 0, 1))).toBeLessThanOrEqual(4_194_303);
  });
});

import { describe, expect, it } from "vitest";
import { bucketMask, bucketsOf } from "../../../src/domain/dispatch/rendezvous.ts";
import { BUCKETS } from "../../../src/kernel/ids.ts";

const names = (count: number) => Array.from({ length: count }, (_, i) => `scanner-${i}`);
const owners = (live: readonly string[]) => {
  const map = new Map<number, string>();
  for (const one of live)
    for (const bucket of bucketsOf(one, live)) {
      expect(map.has(bucket)).toBe(false);
      map.set(bucket, one);
    }
  return map;
};

describe("buckets over scanners", () => {
  it.each([1, 2, 3, 7])("%i scanners own every bucket once, in fair shares", (count) => {
    const live = names(count);
    expect(owners(live).size).toBe(BUCKETS);
    const fair = BUCKETS / count;
    for (const one of live) {
      const share = bucketsOf(one, live).length;
      expect(share).toBeGreaterThan(fair * 0.7);
      expect(share).toBeLessThan(fair * 1.3);
    }
  });

  it("one that comes or goes moves only its own share", () => {
    const before = owners(names(4));
    const after = owners(names(5));
    const moved = [...before].filter(([bucket, owner]) => after.get(bucket) !== owner);
    expect(moved.every(([bucket]) => after.get(bucket) === "scanner-4")).toBe(true);
    expect(moved.length).toBe(bucketsOf("scanner-4", names(5)).length);
  });

  it("does not depend on the order in which the living are named", () => {
    expect(bucketsOf("scanner-1", names(3).reverse())).toEqual(bucketsOf("scanner-1", names(3)));
  });

  it("a mask has one digit a bucket", () => {
    const mask = bucketMask([0, 5, 1023]);
    expect(mask).toHaveLength(BUCKETS);
    expect([...mask].flatMap((bit, i) => (bit === "1" ? [i] : []))).toEqual([0, 5, 1023]);
  });
});

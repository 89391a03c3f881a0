import { describe, expect, it } from "vitest";
import { SlotAccounts } from "../../src/domain/dispatch/slot-accounts.ts";
import { LanePool } from "../../src/hints/lanes.ts";

const openPool = ({ slots = 10_000, capacity = 5_000 } = {}) =>
  new LanePool({ accounts: new SlotAccounts({ slots, reservedFraction: 0, now: () => 0 }), capacity });

describe("lanes of a worker", () => {
  it("a queue seen empty is skipped until something is published to it", () => {
    const pool = openPool();
    pool.published("a", 1);
    const [pick] = pool.pick(1);
    pool.delivered(pick!, []);
    pool.empty(pick!);
    expect(pool.pick(1)).toEqual([]);
    expect(pool.published("a", 1)).toBe(false);
    expect(pool.pick(1)).toEqual([]);
    expect(pool.published("a", 2)).toBe(true);
    expect(pool.pick(1)).toHaveLength(1);
  });

  it("a publish that comes while the queue is being asked is not lost with the empty answer", () => {
    const pool = openPool();
    pool.published("a", 1);
    const [pick] = pool.pick(1);
    pool.published("a", 2);
    pool.delivered(pick!, []);
    pool.empty(pick!);
    expect(pool.hasReady()).toBe(true);
  });

  it("a limited queue stays away from publishes and reminders until its limit is over", () => {
    const pool = openPool();
    pool.published("a", 1);
    pool.limitUntil(pool.lane("a"), 1_000);
    pool.published("a", 2);
    pool.remind("a");
    pool.releaseLimited(999);
    expect(pool.pick(1)).toEqual([]);
    pool.releaseLimited(1_000);
    expect(pool.pick(1)).toHaveLength(1);
  });

  it("with more queues than one call looks at, each has its turn", () => {
    const pool = openPool();
    for (let n = 0; n < 1_000; n++) pool.published(`t${n}`, n + 1);
    const seen = new Set<string>();
    for (let call = 0; call < 120; call++) {
      for (const pick of pool.pick(10)) {
        seen.add(pick.lane.tenantId);
        pool.delivered(pick, [1]);
      }
    }
    expect(seen.size).toBe(1_000);
  });

  it("hints that carry many runs hold as many slots, and fewer of them are asked for", () => {
    const pool = openPool({ slots: 32 });
    pool.published("a", 1);
    const [first] = pool.pick(1);
    pool.delivered(first!, [8]);
    expect(pool.options.accounts.inUse("a")).toBe(8);
    expect(pool.pick(24)).toMatchObject([{ hints: 3, held: 24 }]);
    expect(pool.pick(24)).toEqual([]);
  });

  it("what is forgotten for lack of room is forgotten whole", () => {
    const pool = openPool({ capacity: 2 });
    for (const [n, tenant] of ["a", "b", "c"].entries()) pool.published(tenant, n + 1);
    expect(pool.pick(10).map(({ lane }) => lane.tenantId)).toEqual(["b", "c"]);
  });
});

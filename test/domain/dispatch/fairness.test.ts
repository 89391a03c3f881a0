import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Contender, MEMORY_MS, type Pool, shareOut } from "../../../src/domain/dispatch/fairness.ts";

const contender = (tenantId: string, more: Partial<Contender> = {}): Contender => ({
  tenantId,
  weight: 1,
  inUse: 0,
  virtualTime: 0,
  wants: 1_000,
  ...more,
});
const pool = (more: Partial<Pool> = {}): Pool => ({
  slots: 100,
  inUse: 0,
  reservedFraction: 0,
  totalWeight: 0,
  ...more,
});
const given = (...args: Parameters<typeof shareOut>) =>
  Object.fromEntries(shareOut(...args).map(({ tenantId, slots }) => [tenantId, slots]));

describe("sharing out the slots of a pool", () => {
  it("a tenant alone gets every idle slot", () => {
    expect(given(pool(), [contender("a")], 100)).toEqual({ a: 100 });
  });

  it("slots in use are levelled by weight", () => {
    const contenders = [contender("a", { weight: 3 }), contender("b"), contender("c", { inUse: 15 })];
    expect(given(pool({ inUse: 15 }), contenders, 60)).toEqual({ a: 45, b: 15 });
  });

  it("what a tenant does not want goes to the others", () => {
    expect(given(pool(), [contender("a", { wants: 3 }), contender("b")], 50)).toEqual({ a: 3, b: 47 });
  });

  it("a tenant above its share leaves the reserved slots to those below theirs", () => {
    const greedy = contender("greedy", { inUse: 90 });
    const busy = pool({ inUse: 90, reservedFraction: 0.1, totalWeight: 10 });
    expect(given(busy, [greedy], 10)).toEqual({});
    expect(given(busy, [greedy, contender("late")], 10)).toEqual({ late: 10 });
    expect(given({ ...busy, inUse: 80 }, [{ ...greedy, inUse: 80 }], 20)).toEqual({ greedy: 10 });
  });

  it("the only tenant of an installation is never above its share", () => {
    expect(given(pool({ reservedFraction: 0.1, totalWeight: 1 }), [contender("a")], 100)).toEqual({ a: 100 });
  });

  it("every tenant is entitled to one slot, however many tenants there are", () => {
    const crowd = Array.from({ length: 500 }, (_, n) => contender(`t${n}`));
    expect(shareOut(pool({ slots: 8, reservedFraction: 0.5, totalWeight: 500 }), crowd, 8)).toHaveLength(8);
  });

  it("what a tenant has held counts like what it holds, in proportion to how long it was", () => {
    const contenders = [contender("a", { virtualTime: 3 * MEMORY_MS }), contender("b", { inUse: 1 })];
    expect(given(pool({ inUse: 1 }), contenders, 2)).toEqual({ b: 2 });
    expect(given(pool({ inUse: 1 }), contenders, 6)).toEqual({ a: 2, b: 4 });
  });

  it("a tenant whose share is no whole number of slots may have the next whole one before the reserve", () => {
    const crowd = Array.from({ length: 3 }, (_, n) => contender(`t${n}`, { inUse: 6 }));
    expect(given(pool({ slots: 20, inUse: 18, reservedFraction: 0.1, totalWeight: 3 }), crowd, 2)).toEqual({
      t0: 1,
      t1: 1,
    });
    const full = [contender("a", { inUse: 7 })];
    expect(given(pool({ slots: 20, inUse: 18, reservedFraction: 0.1, totalWeight: 3 }), full, 2)).toEqual({});
  });

  const contenders = fc.array(
    fc.record({
      weight: fc.integer({ min: 1, max: 10 }),
      inUse: fc.integer({ min: 0, max: 20 }),
      virtualTime: fc.integer({ min: 0, max: 50 }),
      wants: fc.integer({ min: 0, max: 30 }),
    }),
    { maxLength: 12 },
  );

  it("never gives more than is wanted, free, or asked for, and leaves nothing idle without a reserve", () => {
    fc.assert(
      fc.property(
        contenders,
        fc.integer({ min: 1, max: 80 }),
        fc.integer({ min: 0, max: 80 }),
        (some, slots, wanted) => {
          const named = some.map((one, n) => ({ ...one, tenantId: `t${n}` }));
          const inUse = named.reduce((sum, one) => sum + one.inUse, 0);
          const allotted = shareOut(pool({ slots, inUse }), named, wanted);
          const total = allotted.reduce((sum, one) => sum + one.slots, 0);
          const asked = named.reduce((sum, one) => sum + one.wants, 0);
          expect(total).toBe(Math.max(0, Math.min(wanted, slots - inUse, asked)));
          for (const one of allotted) {
            expect(one.slots).toBeLessThanOrEqual(named.find(({ tenantId }) => tenantId === one.tenantId)!.wants);
          }
        },
      ),
    );
  });

  it("nobody who still wants more is left behind one that was given a slot and holds more for its weight", () => {
    fc.assert(
      fc.property(contenders, fc.integer({ min: 1, max: 80 }), (some, wanted) => {
        const named = some.map((one, n) => ({ ...one, tenantId: `t${n}` }));
        const allotted = given(pool({ slots: 1_000 }), named, wanted);
        for (const winner of named.filter(({ tenantId }) => allotted[tenantId])) {
          const before = (winner.inUse + allotted[winner.tenantId]! - 1) / winner.weight;
          for (const other of named) {
            const got = allotted[other.tenantId] ?? 0;
            if (got < other.wants) expect((other.inUse + got) / other.weight).toBeGreaterThanOrEqual(before);
          }
        }
      }),
    );
  });
});

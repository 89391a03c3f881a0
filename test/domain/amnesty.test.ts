import { describe, expect, it } from "vitest";
import { type Amnesty, observe, type Watch } from "../../src/domain/amnesty.ts";
import { DEFAULT_LEASE, trustedUntil } from "../../src/domain/lease.ts";

describe("amnesty", () => {
  const terms = DEFAULT_LEASE;
  const watch = (ms: number, change: Partial<Watch> = {}): Watch => ({
    databaseAt: 1e12 + ms,
    monotonicMs: ms,
    serverStartedAt: 5,
    timeline: 1,
    ...change,
  });
  const first: Amnesty = observe(undefined, watch(0), terms);

  it("lasts one lease after the first look", () => {
    expect(first.until).toBe(1e12 + terms.ttlMs);
    expect(observe(first, watch(5000), terms).until).toBe(first.until);
  });

  it.each([
    ["no look for longer than a heartbeat", watch(10_001)],
    ["a server that was started anew", watch(1000, { serverStartedAt: 6 })],
    ["another timeline", watch(1000, { timeline: 2 })],
    ["a clock that jumped ahead", watch(1000, { databaseAt: 1e12 + 6500 })],
    ["a clock that stepped back", watch(1000, { databaseAt: 1e12 - 4500 })],
  ])("begins anew after %s", (_, seen) => {
    expect(observe(first, seen, terms).until).toBe(seen.databaseAt + terms.ttlMs);
  });

  it("a gap of just a heartbeat, or a step of five seconds, is none", () => {
    expect(observe(first, watch(10_000), terms).until).toBe(first.until);
    expect(observe(first, watch(1000, { databaseAt: 1e12 + 6000 }), terms).until).toBe(first.until);
  });

  it("trust in a lease counts from before the call that gave it", () => {
    expect(trustedUntil(1000, terms)).toBe(1000 + terms.ttlMs - terms.marginMs);
  });
});

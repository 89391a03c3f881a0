import { describe, expect, it } from "vitest";
import { decideRetry } from "../../src/domain/retry.ts";

describe("retry", () => {
  const policy = { maxAttempts: 3, maxElapsedMs: 3_600_000, baseMs: 1000, capMs: 60_000 };
  const failure = { transient: true, code: "x", message: "x" };
  const decide = (attempts: number, change: object = {}, nowAt = 1_000_000, chance = 0.999) =>
    decideRetry({ ...failure, ...change }, policy, { attempts, budgetFrom: 1_000_000 }, nowAt, chance);

  it("waits within a ceiling that doubles and is capped", () => {
    expect(decide(1)).toEqual({ kind: "retry", notBefore: 1_000_999 });
    expect(decide(2)).toEqual({ kind: "retry", notBefore: 1_001_998 });
    expect(decideRetry(failure, { ...policy, maxAttempts: 100 }, { attempts: 60, budgetFrom: 0 }, 0, 0.999)).toEqual({
      kind: "retry",
      notBefore: 59_940,
    });
    expect(decide(1, {}, 1_000_000, 0)).toEqual({ kind: "retry", notBefore: 1_000_000 });
  });

  it("keeps the other side's patience, but not beyond the time there is", () => {
    expect(decide(1, { retryAfterMs: 5000 })).toEqual({ kind: "retry", notBefore: 1_005_000 });
    expect(decide(1, { retryAfterMs: 3_600_001 })).toEqual({ kind: "give-up", reason: "elapsed-exhausted" });
  });

  it("gives up on what is permanent, tried often enough, or too late", () => {
    expect(decide(1, { transient: false })).toEqual({ kind: "give-up", reason: "permanent" });
    expect(decide(3)).toEqual({ kind: "give-up", reason: "attempts-exhausted" });
    expect(decide(1, {}, 1_000_000 + 3_600_000)).toEqual({ kind: "give-up", reason: "elapsed-exhausted" });
  });
});

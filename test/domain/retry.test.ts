import { describe, expect, it } from "vitest";
import { decideRetry, RETRY_AFTER_LIMIT_MS } from "../../src/domain/retry.ts";

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

  it("does not believe an absurd patience: a day is the most, and the time there is the bound", () => {
    const month = { ...policy, maxElapsedMs: 30 * 86_400_000 };
    const asked = { ...failure, retryAfterMs: 365 * 86_400_000 };
    expect(decideRetry(asked, month, { attempts: 1, budgetFrom: 0 }, 0, 0)).toEqual({
      kind: "retry",
      notBefore: RETRY_AFTER_LIMIT_MS,
    });
    expect(decide(1, { retryAfterMs: Number.MAX_SAFE_INTEGER })).toEqual({
      kind: "give-up",
      reason: "elapsed-exhausted",
    });
  });

  it("gives up at once on a code that the schedule calls hopeless, and on no other", () => {
    const picky = { ...policy, nonRetryable: ["no-such-account", "attempt-timeout"] };
    const of = (code: string) => decideRetry({ ...failure, code }, picky, { attempts: 1, budgetFrom: 0 }, 0, 0).kind;
    expect(["no-such-account", "attempt-timeout", "no-such", "x"].map(of)).toEqual([
      "give-up",
      "give-up",
      "retry",
      "retry",
    ]);
    expect(
      decideRetry({ ...failure, code: "attempt-timeout" }, picky, { attempts: 1, budgetFrom: 0 }, 0, 0),
    ).toMatchObject({ reason: "non-retryable" });
  });

  it("spreads retries over the whole of each wait: full jitter", () => {
    const waits = [0, 0.25, 0.5, 0.75].map((chance) => decide(3 - 1, {}, 1_000_000, chance));
    expect(waits.map((one) => (one.kind === "retry" ? one.notBefore - 1_000_000 : undefined))).toEqual([
      0, 500, 1000, 1500,
    ]);
  });

  it("gives up on what is permanent, tried often enough, or too late", () => {
    expect(decide(1, { transient: false })).toEqual({ kind: "give-up", reason: "permanent" });
    expect(decide(3)).toEqual({ kind: "give-up", reason: "attempts-exhausted" });
    expect(decide(1, {}, 1_000_000 + 3_600_000)).toEqual({ kind: "give-up", reason: "elapsed-exhausted" });
  });
});

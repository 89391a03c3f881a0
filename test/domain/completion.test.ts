import { describe, expect, it } from "vitest";
import { type CompletionView, decideCompletion } from "../../src/domain/completion.ts";

describe("completion", () => {
  const claim = { runId: "r", fence: 7n, output: { objectId: "o", sha256: "aa" } };
  const live = { state: "running", fence: 7n, leaseUntil: 1000 };
  const object = { state: "staged", runId: "r", fence: 7n, sha256: "aa", grantedUntil: 1000 };
  const view = (change: Partial<CompletionView> = {}): CompletionView => ({
    live,
    ended: undefined,
    object,
    ...change,
  });
  const kind = (change: Partial<CompletionView>, nowAt = 500) => decideCompletion(claim, view(change), nowAt).kind;

  it("is accepted under the current fence, a live lease and a staged object", () => {
    expect(kind({})).toBe("accepted");
    expect(decideCompletion({ ...claim, output: null }, view({ object: undefined }), 500).kind).toBe("accepted");
  });

  it("a lease that ends this very instant is over", () => {
    expect(kind({}, 1000)).toBe("lease-lapsed");
    expect(kind({ live: { ...live, leaseUntil: 1001 } }, 1000)).toBe("object-unusable");
  });

  it("another fence is stale, whatever else is right", () => {
    expect(kind({ live: { ...live, fence: 8n } })).toBe("stale-fence");
    expect(kind({ live: { ...live, state: "retrying", fence: null } })).toBe("stale-fence");
    expect(kind({ live: undefined })).toBe("stale-fence");
    expect(kind({ live: undefined, ended: { state: "succeeded", acceptedFence: 8n, sha256: "aa" } })).toBe(
      "stale-fence",
    );
    expect(kind({ live: undefined, ended: { state: "canceled", acceptedFence: null, sha256: null } })).toBe(
      "stale-fence",
    );
  });

  it("said again it gets the saved answer, or a conflict", () => {
    expect(kind({ live: undefined, ended: { state: "succeeded", acceptedFence: 7n, sha256: "aa" } })).toBe(
      "already-accepted",
    );
    expect(kind({ live: undefined, ended: { state: "succeeded", acceptedFence: 7n, sha256: "bb" } })).toBe(
      "result-conflict",
    );
    expect(kind({ live: undefined, ended: { state: "succeeded", acceptedFence: 7n, sha256: null } })).toBe(
      "result-conflict",
    );
  });

  it.each([
    ["no such object", undefined],
    ["granted", { ...object, state: "granted" }],
    ["referenced", { ...object, state: "referenced" }],
    ["staged by another attempt", { ...object, fence: 6n }],
    ["staged by another attempt", { ...object, runId: "another" }],
    ["another checksum", { ...object, sha256: "bb" }],
    ["an expired grant", { ...object, grantedUntil: 500 }],
  ])("an object that cannot be used: %s", (found, one) => {
    expect(decideCompletion(claim, view({ object: one }), 500)).toEqual({ kind: "object-unusable", found });
  });
});

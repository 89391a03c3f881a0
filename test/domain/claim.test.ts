import { describe, expect, it } from "vitest";
import { decideClaim } from "../../src/domain/claim.ts";

describe("claim", () => {
  const run = { state: "queued" as const, notBefore: 100, startDeadlineAt: 200, cancelRequestedAt: null, attempt: 0 };

  it("decides by the authority's clock, to the instant", () => {
    expect(decideClaim(run, 99)).toBe("not-due");
    expect(decideClaim(run, 100)).toBe("claim");
    expect(decideClaim(run, 200)).toBe("claim");
    expect(decideClaim(run, 201)).toBe("miss-deadline");
    expect(decideClaim({ ...run, attempt: 1, state: "retrying" }, 201)).toBe("claim");
  });

  it("a cancellation comes first; what is not waiting cannot be claimed", () => {
    expect(decideClaim({ ...run, cancelRequestedAt: 1 }, 500)).toBe("cancel");
    for (const state of ["running", "blocked"] as const)
      expect(decideClaim({ ...run, state, cancelRequestedAt: 1 }, 150)).toBe("not-claimable");
  });
});

import { describe, expect, it } from "vitest";
import { EDGES, ENDED_STATES, LIVE_STATES } from "../../src/domain/states.ts";

describe("the life cycle", () => {
  it("only replay and backfill leave an end, and success and cancellation are for ever", () => {
    expect(EDGES.succeeded).toEqual([]);
    expect(EDGES.canceled).toEqual([]);
    for (const state of ["failed", "skipped"] as const) expect(EDGES[state]).toEqual(["queued", "blocked"]);
    expect([...LIVE_STATES, ...ENDED_STATES].sort()).toEqual(Object.keys(EDGES).sort());
  });

  it("every open run can be canceled, and nothing but a running one succeeds", () => {
    for (const state of LIVE_STATES) expect(EDGES[state]).toContain("canceled");
    expect(
      Object.entries(EDGES)
        .filter(([, to]) => to.includes("succeeded"))
        .map(([from]) => from),
    ).toEqual(["running"]);
  });
});

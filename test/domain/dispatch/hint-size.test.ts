import { describe, expect, it } from "vitest";
import { groupIntoRows, MOST_RUNS_PER_HINT, runsPerHint } from "../../../src/domain/dispatch/hint-size.ts";

describe("hints", () => {
  const run = (id: string, change: object = {}) => ({
    id,
    tenantId: "t",
    class: "short",
    lane: 1 as const,
    availableAt: 5,
    ...change,
  });

  it("name many runs only where a run is quick and nothing limits the starts", () => {
    expect(runsPerHint({ startRatePerSecond: null, maxRunning: null }, 10)).toBe(MOST_RUNS_PER_HINT);
    expect(runsPerHint({ startRatePerSecond: 5, maxRunning: null }, 10)).toBe(1);
    expect(runsPerHint({ startRatePerSecond: null, maxRunning: null }, 250)).toBe(1);
    expect(runsPerHint({ startRatePerSecond: null, maxRunning: 7 }, 10)).toBe(7);
    expect(runsPerHint({ startRatePerSecond: null, maxRunning: 0 }, 10)).toBe(1);
  });

  it("group by tenant, class, lane and instant, in order, up to a size", () => {
    const runs = [
      run("a"),
      run("b", { tenantId: "u" }),
      run("c"),
      run("d", { lane: 2 }),
      run("e"),
      run("f", { availableAt: 6 }),
      run("g", { class: "long" }),
    ];
    const rows = groupIntoRows(runs, (tenantId) => (tenantId === "t" ? 2 : 32));
    expect(rows.map((row) => row.runs.join(""))).toEqual(["ac", "b", "d", "e", "f", "g"]);
    expect(groupIntoRows([], () => 1)).toEqual([]);
  });

  it("of what tenants' own workers do name one run each: they are asked for by job", () => {
    const remote = { class: "remote" };
    const rows = groupIntoRows([run("a", remote), run("b", remote), run("c"), run("d")], () => 32);
    expect(rows.map((row) => row.runs.join(""))).toEqual(["a", "b", "cd"]);
  });
});

import { describe, expect, it } from "vitest";
import type { Overlap } from "../../src/domain/definition.ts";
import { freeGuards, slotGuard, slotsOf } from "../../src/domain/guard.ts";
import { type OpenRun, planOverlap } from "../../src/domain/overlap.ts";

const SCHEDULE = "01920000-0000-8000-8000-000000000001";
const births = (...ids: string[]) => ids.map((id, i) => ({ id, scheduledAt: 1000 + i }));
const open = (id: string, state: OpenRun["state"], guard: string | null = null): OpenRun => ({
  id,
  state,
  guard,
  scheduledAt: 0,
});
const plan = (overlap: Overlap, runs: readonly OpenRun[], ...ids: string[]) => {
  const made = planOverlap(SCHEDULE, overlap, runs, births(...ids));
  return {
    born: Object.fromEntries(made.born.map((one) => [one.birth.id, one.guard])),
    skipped: made.skipped.map((one) => one.id),
    superseded: made.superseded,
    canceled: made.canceled,
    cancelRequested: made.cancelRequested,
  };
};
const nothing = { born: {}, skipped: [], superseded: [], canceled: [], cancelRequested: [] };

describe("overlap is decided at birth", () => {
  it("forbid: the first takes the guard, later ones wait; nobody overtakes", () => {
    expect(plan({ policy: "forbid" }, [], "a", "b", "c")).toEqual({
      ...nothing,
      born: { a: SCHEDULE, b: null, c: null },
    });
    expect(plan({ policy: "forbid" }, [open("h", "retrying", SCHEDULE)], "a")).toEqual({
      ...nothing,
      born: { a: null },
    });
    // A waiter without a holder is about to get its guard: the new run stays behind it.
    expect(plan({ policy: "forbid" }, [open("w", "blocked")], "a")).toEqual({ ...nothing, born: { a: null } });
  });

  it("bufferOne: the newest waits, whoever waited before makes way", () => {
    const holder = open("h", "running", SCHEDULE);
    expect(plan({ policy: "bufferOne" }, [holder, open("w", "blocked")], "a", "b")).toEqual({
      ...nothing,
      born: { b: null },
      skipped: ["a"],
      superseded: ["w"],
    });
    expect(plan({ policy: "bufferOne" }, [], "a", "b", "c")).toEqual({
      ...nothing,
      born: { a: SCHEDULE, c: null },
      skipped: ["b"],
    });
  });

  it("skip: nothing waits", () => {
    expect(plan({ policy: "skip" }, [open("h", "queued", SCHEDULE)], "a", "b")).toEqual({
      ...nothing,
      skipped: ["a", "b"],
    });
    expect(plan({ policy: "skip" }, [], "a", "b")).toEqual({ ...nothing, born: { a: SCHEDULE }, skipped: ["b"] });
  });

  it("cancelRunning: a running holder is asked, one that has not started goes at once", () => {
    expect(plan({ policy: "cancelRunning" }, [open("h", "running", SCHEDULE)], "a")).toEqual({
      ...nothing,
      born: { a: null },
      cancelRequested: ["h"],
    });
    for (const state of ["queued", "retrying"] as const) {
      expect(plan({ policy: "cancelRunning" }, [open("h", state, SCHEDULE)], "a")).toEqual({
        ...nothing,
        born: { a: SCHEDULE },
        canceled: ["h"],
      });
    }
  });

  it("cancelRunning: of several waiters the newest stays", () => {
    expect(plan({ policy: "cancelRunning" }, [open("h", "running", SCHEDULE), open("w", "blocked")], "a", "b")).toEqual(
      {
        ...nothing,
        born: { b: null },
        skipped: ["a"],
        superseded: ["w"],
        cancelRequested: ["h"],
      },
    );
  });

  it("cancelRunning: a surplus holder of an edit frees no slot when it goes", () => {
    expect(plan({ policy: "cancelRunning" }, [open("h", "running", SCHEDULE), open("s", "queued", "s")], "a")).toEqual({
      ...nothing,
      born: { a: null },
      canceled: ["s"],
      cancelRequested: ["h"],
    });
  });

  it("without births nothing happens to anybody", () => {
    for (const overlap of [{ policy: "cancelRunning" }, { policy: "bufferOne" }, { policy: "allow" }] as const) {
      expect(plan(overlap, [open("h", "queued", SCHEDULE), open("w", "blocked")])).toEqual(nothing);
    }
  });

  it("allow(n): free slots in order, then waiting", () => {
    const guards = [0, 1, 2].map((k) => slotGuard(SCHEDULE, k));
    expect(plan({ policy: "allow", limit: 3 }, [open("h", "running", guards[1]!)], "a", "b", "c")).toEqual({
      ...nothing,
      born: { a: guards[0], b: guards[2], c: null },
    });
  });

  it("allow without a limit: everybody holds their own id", () => {
    expect(plan({ policy: "allow" }, [open("h", "running", "h")], "a", "b")).toEqual({
      ...nothing,
      born: { a: "a", b: "b" },
    });
  });
});

describe("what a person asked for again waits without making way", () => {
  const asked = (id: string): OpenRun => ({ ...open(id, "blocked"), heldBy: "replay" });
  const holder = open("h", "running", SCHEDULE);

  it("bufferOne: it is not the one that waits, and stays when that one is replaced", () => {
    const waiting = [holder, asked("r1"), open("w", "blocked"), asked("r2")];
    expect(plan({ policy: "bufferOne" }, waiting, "a")).toEqual({ ...nothing, born: { a: null }, superseded: ["w"] });
    expect(plan({ policy: "bufferOne" }, [holder, asked("r1")], "a", "b")).toEqual({
      ...nothing,
      born: { b: null },
      skipped: ["a"],
    });
    // Its guard is on the way: nobody may take it.
    expect(plan({ policy: "bufferOne" }, [asked("r1")], "a")).toEqual({ ...nothing, born: { a: null } });
  });

  it("cancelRunning: the newest run takes the guard of the holder that it cancels, past whoever was asked for", () => {
    const waiting = [open("h", "queued", SCHEDULE), asked("r1"), open("w", "blocked")];
    expect(plan({ policy: "cancelRunning" }, waiting, "a")).toEqual({
      ...nothing,
      born: { a: SCHEDULE },
      superseded: ["w"],
      canceled: ["h"],
    });
    expect(plan({ policy: "cancelRunning" }, [holder, asked("r1")], "a")).toEqual({
      ...nothing,
      born: { a: null },
      cancelRequested: ["h"],
    });
  });
});

describe("guards", () => {
  it("slot 0 is the schedule itself, the others are ids of their own, always the same", () => {
    expect(slotGuard(SCHEDULE, 0)).toBe(SCHEDULE);
    const guards = Array.from({ length: 1000 }, (_, k) => slotGuard(SCHEDULE, k));
    expect(new Set(guards).size).toBe(1000);
    for (const guard of guards)
      expect(guard).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(slotGuard(SCHEDULE, 7)).toBe(guards[7]);
    expect(slotGuard("01920000-0000-8000-8000-000000000002", 7)).not.toBe(guards[7]);
  });

  it("free are the lowest that nobody holds", () => {
    expect(freeGuards(SCHEDULE, 3, new Set([SCHEDULE, "somebody's own"]))).toEqual([
      slotGuard(SCHEDULE, 1),
      slotGuard(SCHEDULE, 2),
    ]);
    expect(freeGuards(SCHEDULE, 1, new Set([SCHEDULE]))).toEqual([]);
  });

  it("how many may be open", () => {
    expect(slotsOf({ policy: "forbid" })).toBe(1);
    expect(slotsOf({ policy: "allow", limit: 5 })).toBe(5);
    expect(slotsOf({ policy: "allow" })).toBe(Number.POSITIVE_INFINITY);
  });
});

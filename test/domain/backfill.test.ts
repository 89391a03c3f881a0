import { describe, expect, it } from "vitest";
import {
  faultOfRange,
  judgeInstant,
  type Recorded,
  roomOfStep,
  takeVerdicts,
  type Verdict,
  waitsItsTurn,
  walkRange,
} from "../../src/domain/backfill.ts";
import { atNominal, type Place } from "../../src/domain/placement.ts";
import { SKIP_REASONS } from "../../src/domain/states.ts";

const AT = 1_000_000;
const excluded: Place = () => ({ kind: "skip", reason: "calendar" });
const monday: Place = (at) => ({ kind: "due", dueAt: at + 5 });

describe("what a backfill does with an instant", () => {
  it("missing: takes what nobody decided against, and what nobody wrote down", () => {
    const taken = SKIP_REASONS.filter(
      (reason) => judgeInstant(AT, { kind: "skip", reason }, "missing", atNominal).kind === "run",
    );
    expect(taken).toEqual(["misfire", "paused", "quota", "suspended"]);
    expect(judgeInstant(AT, undefined, "missing", atNominal)).toEqual({
      kind: "run",
      at: AT,
      dueAt: AT,
      was: undefined,
    });
    expect(judgeInstant(AT, { kind: "range", reason: "calendar", fromAt: 0 }, "missing", atNominal)).toEqual({
      kind: "excluded",
      at: AT,
      reason: "calendar",
    });
  });

  it("all-skipped: takes every skip", () => {
    for (const reason of SKIP_REASONS) {
      for (const was of [
        { kind: "skip", reason },
        { kind: "range", reason, fromAt: 0 },
      ] as Recorded[]) {
        expect(judgeInstant(AT, was, "all-skipped", atNominal)).toEqual({ kind: "run", at: AT, dueAt: AT, was });
      }
    }
  });

  it("never takes a run, however it ended or stands", () => {
    for (const state of ["queued", "running", "succeeded", "failed", "canceled"] as const) {
      expect(judgeInstant(AT, { kind: "run", state }, "all-skipped", excluded)).toEqual({
        kind: "existing",
        at: AT,
        state,
      });
    }
  });

  it("asks the calendars as they stand: what they exclude is left out, unless everything is asked for", () => {
    const missed: Recorded = { kind: "skip", reason: "misfire" };
    expect(judgeInstant(AT, missed, "missing", excluded)).toEqual({ kind: "excluded", at: AT, reason: "calendar" });
    expect(judgeInstant(AT, missed, "all-skipped", excluded)).toMatchObject({ kind: "run", dueAt: AT });
    expect(judgeInstant(AT, missed, "missing", monday)).toMatchObject({ kind: "run", at: AT, dueAt: AT + 5 });
  });
});

describe("a step of a backfill", () => {
  const everyTen = (at: number) => (at < 100 ? (Math.floor(at / 10) + 1) * 10 : null);

  it("walks from inclusive to exclusive, so many at once, and knows where to go on", () => {
    expect(walkRange(everyTen, 20, 60, 9)).toEqual({ instants: [20, 30, 40, 50], restAt: null });
    expect(walkRange(everyTen, 21, 61, 2)).toEqual({ instants: [30, 40], restAt: 50 });
    expect(walkRange(everyTen, 21, 41, 2)).toEqual({ instants: [30, 40], restAt: null });
    expect(walkRange(everyTen, 95, 500, 9)).toEqual({ instants: [100], restAt: null });
    expect(walkRange(everyTen, 21, 29, 9)).toEqual({ instants: [], restAt: null });
  });

  it("stops before the run for which there is no room, not before what needs none", () => {
    const run = (at: number): Verdict => ({ kind: "run", at, dueAt: at, was: undefined });
    const old = (at: number): Verdict => ({ kind: "existing", at, state: "succeeded" });
    const verdicts = [old(1), run(2), old(3), run(4), old(5)];
    expect(takeVerdicts(verdicts, 1)).toEqual({ taken: verdicts.slice(0, 3), leftAt: 4 });
    expect(takeVerdicts(verdicts, 2)).toEqual({ taken: verdicts, leftAt: undefined });
    expect(takeVerdicts(verdicts, 0)).toEqual({ taken: [old(1)], leftAt: 2 });
  });

  it("has room for a second's worth, less what waits of the schedule already", () => {
    const forbid = { policy: "forbid" } as const;
    expect(roomOfStep(forbid, 10, 1, 0, 200)).toBe(10);
    expect(roomOfStep(forbid, 10, 8, 7, 200)).toBe(3);
    expect(roomOfStep(forbid, 10, 50, 49, 200)).toBe(0);
    expect(roomOfStep(forbid, 1_000, 1, 0, 200)).toBe(200);
    expect(roomOfStep({ policy: "allow", limit: 3 }, 10, 13, 10, 200)).toBe(0);
    expect(roomOfStep({ policy: "allow" }, 10, 995, 0, 200)).toBe(5);
    expect(roomOfStep({ policy: "allow" }, 10, 1_000, 0, 200)).toBe(0);
  });

  it("waits its turn, whatever the policy says of others", () => {
    expect(waitsItsTurn({ policy: "cancelRunning" })).toEqual({ policy: "forbid" });
    expect(waitsItsTurn({ policy: "allow", limit: 3 })).toEqual({ policy: "allow", limit: 3 });
  });
});

describe("the bounds of a backfill", () => {
  const fault = (fromAt: number, toAt: number, undecidedAt: number | null = null) =>
    faultOfRange({ fromAt, toAt }, undecidedAt, 1_000, 9_000.5);

  it("lie within the history that is kept and the past", () => {
    expect(fault(1_000, 9_000)).toBeUndefined();
    expect(fault(2_000, 2_000)).toMatchObject({ field: "to", message: "is not after from" });
    expect(fault(999, 2_000)).toMatchObject({ field: "from", allowed: "1970-01-01T00:00:01.000Z or later" });
    expect(fault(2_000, 9_001)).toMatchObject({ field: "to", allowed: "1970-01-01T00:00:09.000Z or earlier" });
  });

  it("end where instants are decided later", () => {
    expect(fault(2_000, 5_000, 5_000)).toBeUndefined();
    expect(fault(2_000, 5_001, 5_000)).toMatchObject({ field: "to", allowed: "1970-01-01T00:00:05.000Z or earlier" });
    expect(fault(2_000, 9_000, 20_000)).toBeUndefined();
  });
});

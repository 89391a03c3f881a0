import { describe, expect, it } from "vitest";
import {
  REPLAYABLE_ALONE,
  REPLAYABLE_TOGETHER,
  type ReplayedRun,
  refusalOfReplay,
} from "../../src/domain/dead-letters.ts";

const FLOOR = 1_000;
const GIVEN_UP: ReplayedRun = { scheduledAt: FLOOR, state: "failed", letter: "open", scheduleStatus: "active" };
const alone = (change: Partial<ReplayedRun>) => refusalOfReplay({ ...GIVEN_UP, ...change }, REPLAYABLE_ALONE, FLOOR);
const together = (change: Partial<ReplayedRun>) =>
  refusalOfReplay({ ...GIVEN_UP, ...change }, REPLAYABLE_TOGETHER, FLOOR);

describe("a replay", () => {
  it("is of a run that stands failed, and whose letter nobody has replayed", () => {
    expect(alone({})).toBeUndefined();
    for (const state of ["open", "succeeded", "canceled", "skipped"] as const) {
      expect(alone({ state })).toBe("not-failed");
    }
    expect(alone({ letter: "replayed" })).toBe("not-failed");
    expect(alone({ letter: undefined })).toBe("not-found");
  });

  it("of one run may take back a dismissal; many at once means what nobody has decided about", () => {
    expect(alone({ letter: "dismissed" })).toBeUndefined();
    expect(together({ letter: "dismissed" })).toBe("not-failed");
    expect(together({})).toBeUndefined();
  });

  it("does not bring back what lies below the floor of history", () => {
    expect(alone({ scheduledAt: FLOOR - 1 })).toBe("history-removed");
  });

  it("is refused where the schedule was deleted, and nowhere else", () => {
    expect(alone({ scheduleStatus: "deleted" })).toBe("schedule-deleted");
    for (const scheduleStatus of ["paused", "finished", undefined] as const) {
      expect(alone({ scheduleStatus })).toBeUndefined();
    }
  });
});

import { roomInWindow, windowNow } from "../../domain/dispatch/start-rate.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { LaneKey, Usage } from "../../store/rows/usage.ts";

/** How many runs of one hint may start, as far as its tenant's start rate is concerned. */
export type RateRoom = {
  readonly room: number;
  /** When more may, if a window has to end first. */
  readonly againAt: Instant | undefined;
  start(): void;
};

export type RateGate = {
  of(lane: Usage, fetched: boolean): RateRoom;
  /** What the lanes' windows have seen now, of those where something started. */
  windows(): { lane: LaneKey; windowAt: Instant; starts: number }[];
};

const NO_RATE: RateRoom = { room: Number.POSITIVE_INFINITY, againAt: undefined, start: () => undefined };

/**
 * Holds the starts of one claim to their tenants' rates; the lanes are locked. Redis lets one hint go for one start, so a
 * hint that was fetched may start one run: one from before there was a rate may name many. Rows taken directly are held
 * to the window in the usage row, which also counts what came through Redis: when Redis fails, the second goes on.
 */
export function createRateGate(nowAt: Instant): RateGate {
  const windows = new Map<Usage, { windowAt: Instant; starts: number }>();

  function windowOf(lane: Usage): { windowAt: Instant; starts: number } {
    const known = windows.get(lane);
    if (known !== undefined) return known;
    const seen = windowNow({ windowAt: lane.starts_window_at, starts: lane.starts_in_window }, nowAt);
    windows.set(lane, seen);
    return seen;
  }

  return {
    of(lane, fetched) {
      const rate = lane.start_rate_per_second;
      if (rate === null) return NO_RATE;
      const window = windowOf(lane);
      let left = 1;
      return {
        get room() {
          return fetched ? left : roomInWindow(window, rate, nowAt).room;
        },
        againAt: fetched ? undefined : roomInWindow(window, rate, nowAt).againAt,
        start() {
          left--;
          window.starts++;
        },
      };
    },
    windows: () =>
      [...windows]
        .filter(([, { starts }]) => starts > 0)
        .map(([lane, { windowAt, starts }]) => ({
          lane: { tenantId: lane.tenant_id, class: lane.class },
          windowAt,
          starts,
        })),
  };
}

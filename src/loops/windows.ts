import type { Authority } from "../authority/authority.ts";
import { readDispatchView } from "../authority/dispatch/dispatch-view.ts";
import type { DispatchPlan } from "../authority/runs/bear.ts";
import { isRecordedServer } from "../authority/server.ts";
import { runsPerHint } from "../domain/dispatch/hint-size.ts";
import { windowOf } from "../domain/dispatch/window.ts";
import { LANES } from "../domain/states.ts";
import type { LaneRate } from "../hints/publisher.ts";

/**
 * What the scanner and the relay know of the windows: an unlocked estimate, read again every half second. It decides
 * only whether a row may be born as published; the claim decides what really starts.
 */
export type Windows = DispatchPlan & {
  refresh(): Promise<void>;
  /** Slots of live workers per class. */
  readonly slots: ReadonlyMap<string, number>;
};

type Limits = Awaited<ReturnType<typeof readDispatchView>>["limits"];

const STALE_AFTER_MS = 500;

/** Runs that stand in Redis, and how many of them are late ones. */
type Standing = { runs: number; late: number };

const NONE: Standing = { runs: 0, late: 0 };

function plus(a: Standing = NONE, b: Standing): Standing {
  return { runs: a.runs + b.runs, late: a.late + b.late };
}

export type RedisSide = {
  available(): boolean;
  /** Hears every lane's start rate at each look. Never rejects. */
  setRateLimits?(rates: readonly LaneRate[]): Promise<void>;
};

export function createWindows(authority: Authority, redis: RedisSide): Windows {
  let readAt = Number.NEGATIVE_INFINITY;
  let isRecorded = true;
  let slots: ReadonlyMap<string, number> = new Map();
  let p95: ReadonlyMap<string, number> = new Map();
  let limits: Limits = new Map();
  /** What Redis was last told of: of a lane that has left it since, it must hear that its rate is gone. */
  let told: Limits = new Map();
  let telling: Promise<void> | undefined;
  let published = new Map<string, Standing>();
  let totals = new Map<string, Standing>();

  const keyOf = (tenantId: string, class_: string) => `${tenantId} ${class_}`;

  return {
    get slots() {
      return slots;
    },
    async refresh() {
      if (authority.clock.monotonic() - readAt < STALE_AFTER_MS) return;
      readAt = authority.clock.monotonic();
      isRecorded = await isRecordedServer(authority.db);
      const view = await readDispatchView(authority);
      ({ slots, p95, limits } = view);
      published = new Map();
      totals = new Map();
      for (const [key, { class: class_, runs, late }] of view.published) {
        published.set(key, { runs, late });
        totals.set(class_, plus(totals.get(class_), { runs, late }));
      }
      // A copy has no say in what may be its original's Redis. And who is still being told hears of this with the next look.
      if (!isRecorded || telling !== undefined) return;
      const freed = [...told].flatMap(([key, lane]) => (limits.has(key) ? [] : [{ ...lane, startRate: null }]));
      told = limits;
      // Beside the look: what is due does not wait for Redis.
      telling = redis.setRateLimits?.([...limits.values(), ...freed].map(toLaneRate)).finally(() => {
        telling = undefined;
      });
    },
    sizeOf(tenantId, class_) {
      const limit = limits.get(keyOf(tenantId, class_));
      const tenant = { startRatePerSecond: limit?.startRate ?? null, maxRunning: limit?.maxRunning ?? null };
      const most = Math.max(1, Math.floor((slots.get(class_) ?? 0) / 4));
      return Math.min(most, runsPerHint(tenant, p95.get(class_) ?? Number.POSITIVE_INFINITY));
    },
    publishNow(row) {
      // A copy's hints would stand among those of its original; the relay publishes once it was recovered.
      if (!isRecorded || !redis.available() || row.class === "remote") return false;
      const window = windowOf(slots.get(row.class) ?? 0);
      const key = keyOf(row.tenantId, row.class);
      const limit = limits.get(key);
      const mine = published.get(key) ?? NONE;
      const all = totals.get(row.class) ?? NONE;
      // Late work is content with what is left of the window, so it does not count against what is on time: a long
      // catch-up would keep that waiting for room. A quarter of the window is enough for it to go by this fast way: what
      // stands in Redis already, workers fetch beside what is on time. The relay sees to the rest.
      const isLate = row.lane === LANES.late;
      const counted = (standing: Standing) => (isLate ? standing.runs : standing.runs - standing.late);
      const part = isLate ? window / 4 : window;
      if (counted(all) + row.runs.length > part || counted(mine) > part / 4) return false;
      if (limit?.maxRunning != null && limit.running + mine.runs >= limit.maxRunning) return false;
      const added = { runs: row.runs.length, late: isLate ? row.runs.length : 0 };
      published.set(key, plus(mine, added));
      totals.set(row.class, plus(all, added));
      return true;
    },
  };
}

function toLaneRate(lane: { tenantId: string; class: string; startRate: number | null }): LaneRate {
  const rate = lane.startRate === null ? undefined : { max: lane.startRate, durationMs: 1000 };
  return { tenantId: lane.tenantId, class: lane.class, rate };
}

/**
 * Publish only what can start: how many runs of each lane may stand in Redis at once. Redis stays small however long
 * the backlog, and a tenant at its limit is parked, not spun.
 */

export type LaneDemand = {
  tenantId: string;
  class: string;
  weight: number;
  running: number;
  maxRunning: number | null;
  /** Runs of this lane that are published and not yet claimed. */
  published: number;
  /** How many of those are late ones (outbox lane 2). */
  publishedLate: number;
};

/** Runs that may be published of a lane: at most `runs` in all, of which `late` may be late ones. */
export type LaneRoom = { runs: number; late: number };

/** Runs that may stand in Redis per class: twice the slots of the live workers, and something while there is none. */
export function windowOf(slots: number): number {
  return Math.max(64, 2 * slots);
}

/** Late work may always have this part of a lane's share, and what is left of the share beyond it. */
const LATE_MOST = 0.25;

/**
 * Room of each lane: min(share of the window by weight, limit − running − published), at least none. Late runs that stand
 * in Redis do not use up the share of those on time: a retry would wait until one of a long catch-up is claimed.
 */
export function roomOf(lanes: readonly LaneDemand[], windowRuns: number): LaneRoom[] {
  const weights = lanes.reduce((sum, lane) => sum + lane.weight, 0);
  return lanes.map((lane) => {
    const share = Math.max(1, Math.floor((windowRuns * lane.weight) / Math.max(1, weights)));
    const limit = lane.maxRunning === null ? Number.POSITIVE_INFINITY : lane.maxRunning - lane.running - lane.published;
    const onTime = share - (lane.published - lane.publishedLate);
    const late = Math.max(share - lane.published, Math.floor(share * LATE_MOST) - lane.publishedLate);
    return { runs: Math.max(0, Math.min(onTime, limit)), late: Math.max(0, Math.min(late, limit)) };
  });
}

/** Late work (outbox lane 2) gets this part of a tenant's starts, however much else the tenant has. */
const LATE_SHARE = 0.05;

/** How many of so many rows are kept for late ones. Less than a whole row comes by `chance`, so that it comes now and then. */
export function lateRoom(rows: number, chance: number): number {
  return Math.floor(rows * LATE_SHARE + chance);
}

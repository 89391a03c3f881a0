import { LRUCache } from "lru-cache";
import { chargeFor, shareOut } from "../domain/dispatch/fairness.ts";
import type { Instant } from "../kernel/clock.ts";

/** What a worker process remembers of one tenant's queue in one class. */
export type Lane = {
  readonly tenantId: string;
  /** Sequence of the last publish that we know of. */
  sequence: number;
  limitedUntil: Instant;
  virtualTime: number;
  /** Hints to ask for at once: doubles while all are delivered, back to the least when the queue runs dry. */
  appetite: number;
  /** Runs a hint of this queue carried last. */
  runsPerHint: number;
  weight: number;
  /** Hints fetched since a waiting lane-2 hint was last let past the others. */
  sinceLift: number;
};

/** So many hints to ask a lane for; `held` slots are kept for them, `sequence` is what the lane stood at. */
export type Pick = { lane: Lane; hints: number; held: number; sequence: number };

export type PoolOptions = {
  class: string;
  slots: number;
  /** See domain/fairness.ts. */
  reservedFraction: number;
  weightOf: (tenantId: string) => number;
  /** Lanes remembered; the least recently used is forgotten, and found again through the ready set. */
  capacity: number;
};

// More contenders than that in one call cost more than they add: the rest has its turn in the next calls.
const MOST_CONTENDERS = 256;
const LEAST_APPETITE = 4;
const MOST_APPETITE = 32;

/** The lanes of one class in one worker process: which may have hints, which is next, who holds how many slots. */
export class LanePool {
  readonly options: PoolOptions;
  /** Everything published up to this sequence is known here. */
  readUpTo = 0;
  /** Instant from which a limited lane may be asked again; never later than the first one's. */
  nextLimitEnd: Instant = Number.POSITIVE_INFINITY;
  private readonly lanes: LRUCache<string, Lane>;
  private readonly ready = new Set<Lane>();
  private readonly limited = new Set<Lane>();
  private readonly slotsByTenant = new Map<string, number>();
  private slotsInUse = 0;
  private virtualNow = 0;
  private totalWeight = 0;

  constructor(options: PoolOptions) {
    this.options = options;
    this.lanes = new LRUCache<string, Lane>({
      max: options.capacity,
      dispose: (lane) => {
        this.totalWeight -= lane.weight;
        this.ready.delete(lane);
        this.limited.delete(lane);
      },
    });
  }

  lane(tenantId: string): Lane {
    const weight = this.options.weightOf(tenantId);
    const known = this.lanes.get(tenantId);
    if (known !== undefined) {
      this.totalWeight += weight - known.weight;
      known.weight = weight;
      return known;
    }
    const lane: Lane = {
      tenantId,
      sequence: 0,
      limitedUntil: 0,
      virtualTime: this.virtualNow,
      appetite: LEAST_APPETITE,
      runsPerHint: 1,
      weight,
      sinceLift: 0,
    };
    this.totalWeight += weight;
    this.lanes.set(tenantId, lane);
    return lane;
  }

  /** A publish was seen; returns whether it is news. */
  published(tenantId: string, sequence: number): boolean {
    this.readUpTo = Math.max(this.readUpTo, sequence);
    const lane = this.lane(tenantId);
    if (lane.sequence === sequence) return false;
    lane.sequence = sequence;
    if (!this.limited.has(lane)) this.ready.add(lane);
    return true;
  }

  /** Look at this tenant's queue once more, whatever is remembered of it. */
  remind(tenantId: string): void {
    const lane = this.lane(tenantId);
    if (!this.limited.has(lane)) this.ready.add(lane);
  }

  /** Seen empty at the pick's sequence: skipped until it moves. */
  empty({ lane, sequence }: Pick): void {
    lane.appetite = LEAST_APPETITE;
    if (lane.sequence === sequence) this.ready.delete(lane);
  }

  limitUntil(lane: Lane, until: Instant): void {
    lane.limitedUntil = until;
    this.ready.delete(lane);
    if (this.lanes.peek(lane.tenantId) !== lane) return;
    this.limited.add(lane);
    this.nextLimitEnd = Math.min(this.nextLimitEnd, until);
  }

  /** Puts lanes whose limit is over among the ready ones. */
  releaseLimited(now: Instant): void {
    if (now < this.nextLimitEnd) return;
    this.nextLimitEnd = Number.POSITIVE_INFINITY;
    for (const lane of this.limited) {
      if (lane.limitedUntil > now) {
        this.nextLimitEnd = Math.min(this.nextLimitEnd, lane.limitedUntil);
      } else {
        this.limited.delete(lane);
        this.ready.add(lane);
      }
    }
  }

  hasReady(): boolean {
    return this.ready.size > 0;
  }

  /** Decides which queues to ask for how many hints to fill `wanted` slots, and holds those slots. */
  pick(wanted: number): Pick[] {
    const { slots, reservedFraction } = this.options;
    const contenders = [];
    const byTenant = new Map<string, Lane>();
    for (const lane of this.ready) {
      if (contenders.length === MOST_CONTENDERS) break;
      const { tenantId, weight } = lane;
      const inUse = this.inUse(tenantId);
      const wants = lane.appetite * lane.runsPerHint;
      const virtualTime = Math.max(lane.virtualTime, this.virtualNow);
      contenders.push({ tenantId, weight, inUse, virtualTime, wants });
      byTenant.set(tenantId, lane);
    }
    if (this.ready.size > MOST_CONTENDERS) {
      for (const lane of byTenant.values()) {
        this.ready.delete(lane);
        this.ready.add(lane);
      }
    }
    const pool = { slots, inUse: this.slotsInUse, reservedFraction, totalWeight: this.totalWeight };
    const picks = shareOut(pool, contenders, wanted).map(({ tenantId, slots: allotted }) => {
      const lane = byTenant.get(tenantId)!;
      const hints = Math.max(1, Math.floor(allotted / lane.runsPerHint));
      const held = hints * lane.runsPerHint;
      this.hold(tenantId, held);
      return { lane, hints, held, sequence: lane.sequence };
    });
    // The pool stands where its least served contender stands: who comes back from idling starts from there.
    const least = Math.min(...contenders.map((one) => one.virtualTime));
    if (picks.length > 0) this.virtualNow = Math.max(this.virtualNow, least);
    return picks;
  }

  /** A pick came back with hints of so many runs: the slots held for it become what it really brought. */
  delivered({ lane, hints, held }: Pick, runCounts: readonly number[]): void {
    const runs = runCounts.reduce((sum, count) => sum + count, 0);
    this.hold(lane.tenantId, runs - held);
    if (runs > 0) {
      lane.virtualTime = chargeFor(lane.virtualTime, runs, lane.weight, this.virtualNow);
      lane.runsPerHint = runCounts.at(-1)!;
    }
    if (runCounts.length === hints) lane.appetite = Math.min(MOST_APPETITE, lane.appetite * 2);
  }

  /** Adds `slots` (negative: gives back) to what a tenant holds. */
  hold(tenantId: string, slots: number): void {
    const before = this.inUse(tenantId);
    const after = Math.max(0, before + slots);
    this.slotsInUse += after - before;
    if (after === 0) this.slotsByTenant.delete(tenantId);
    else this.slotsByTenant.set(tenantId, after);
  }

  /** Slots held: runs going on, and hints fetched but not yet acknowledged. */
  inUse(tenantId: string): number {
    return this.slotsByTenant.get(tenantId) ?? 0;
  }
}

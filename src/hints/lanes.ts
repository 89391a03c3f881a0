import { LRUCache } from "lru-cache";
import type { SlotAccounts } from "../domain/dispatch/slot-accounts.ts";
import type { Instant } from "../kernel/clock.ts";

/** What a worker process remembers of one tenant's queue in one class. */
export type Lane = {
  readonly tenantId: string;
  /** Sequence of the last publish that we know of. */
  sequence: number;
  limitedUntil: Instant;
  /** Hints to ask for at once: doubles while all are delivered, back to the least when the queue runs dry. */
  appetite: number;
  /** Runs a hint of this queue carried last. */
  runsPerHint: number;
  /** Hints fetched since a waiting lane-2 hint was last let past the others. */
  sinceLift: number;
};

/** So many hints to ask a lane for; `held` slots are kept for them, `sequence` is what the lane stood at. */
export type Pick = { lane: Lane; hints: number; held: number; sequence: number };

export type PoolOptions = {
  /** Whose the slots are. */
  accounts: SlotAccounts;
  /** Lanes remembered; the least recently used is forgotten, and found again through the ready set. */
  capacity: number;
};

// More contenders than that in one call cost more than they add: the rest has its turn in the next calls.
const MOST_CONTENDERS = 256;
const LEAST_APPETITE = 4;
const MOST_APPETITE = 32;

/** The lanes of one class in one worker process: which may have hints, and how many to ask each for. */
export class LanePool {
  readonly options: PoolOptions;
  /** Everything published up to this sequence is known here. */
  readUpTo = 0;
  /** Instant from which a limited lane may be asked again; never later than the first one's. */
  nextLimitEnd: Instant = Number.POSITIVE_INFINITY;
  private readonly lanes: LRUCache<string, Lane>;
  private readonly ready = new Set<Lane>();
  private readonly limited = new Set<Lane>();

  constructor(options: PoolOptions) {
    this.options = options;
    this.lanes = new LRUCache<string, Lane>({
      max: options.capacity,
      dispose: (lane) => {
        options.accounts.forget(lane.tenantId);
        this.ready.delete(lane);
        this.limited.delete(lane);
      },
    });
  }

  lane(tenantId: string): Lane {
    const known = this.lanes.get(tenantId);
    if (known !== undefined) return known;
    const lane: Lane = {
      tenantId,
      sequence: 0,
      limitedUntil: 0,
      appetite: LEAST_APPETITE,
      runsPerHint: 1,
      sinceLift: 0,
    };
    this.options.accounts.know(tenantId);
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
    const { accounts } = this.options;
    const contenders = [];
    const byTenant = new Map<string, Lane>();
    for (const lane of this.ready) {
      if (contenders.length === MOST_CONTENDERS) break;
      contenders.push(accounts.contender(lane.tenantId, lane.appetite * lane.runsPerHint));
      byTenant.set(lane.tenantId, lane);
    }
    if (this.ready.size > MOST_CONTENDERS) {
      for (const lane of byTenant.values()) {
        this.ready.delete(lane);
        this.ready.add(lane);
      }
    }
    return accounts.share(contenders, wanted).map(({ tenantId, slots: allotted }) => {
      const lane = byTenant.get(tenantId)!;
      const hints = Math.max(1, Math.floor(allotted / lane.runsPerHint));
      const held = hints * lane.runsPerHint;
      accounts.hold(tenantId, held);
      return { lane, hints, held, sequence: lane.sequence };
    });
  }

  /** A pick came back with hints of so many runs: the slots held for it become what it really brought. */
  delivered({ lane, hints, held }: Pick, runCounts: readonly number[]): void {
    const runs = runCounts.reduce((sum, count) => sum + count, 0);
    const { accounts } = this.options;
    accounts.hold(lane.tenantId, runs - held);
    if (runs > 0) {
      accounts.charge(lane.tenantId, runs);
      lane.runsPerHint = runCounts.at(-1)!;
    }
    if (runCounts.length === hints) lane.appetite = Math.min(MOST_APPETITE, lane.appetite * 2);
  }
}

import { type Allotment, type Contender, inOrder, MEMORY_MS, shareOut } from "./fairness.ts";

type Account = {
  weight: number;
  inUse: number;
  /** Slot-ms per weight, up to `chargedAt`. */
  virtualTime: number;
  chargedAt: number;
};

export type AccountOptions = {
  slots: number;
  /** See fairness.ts. */
  reservedFraction: number;
  /** Milliseconds of a clock that never goes back. */
  now(): number;
  /** Tenants remembered; beyond it, those that hold nothing are forgotten. Default 20,000. */
  capacity?: number;
};

/** A start costs at least so much slot time, so that runs which end at once are counted too. */
const START_MS = 1;

/**
 * Who holds how many slots of one class in one worker process, and who has held how many: a virtual clock per tenant that
 * runs as fast as the slots it holds, divided by its weight. Two bounds keep the past in proportion. Nobody stands before
 * `floor`, where the least served tenant stood that last competed: idling saves nothing up. And nobody stands further
 * behind it than MEMORY_MS of its share: slots borrowed while nobody wanted them are not held against anybody for long.
 */
export class SlotAccounts {
  readonly slots: number;
  private readonly options: AccountOptions;
  private readonly accounts = new Map<string, Account>();
  private weights: ReadonlyMap<string, number> = new Map();
  private slotsInUse = 0;
  private totalWeight = 0;
  private floor = 0;

  constructor(options: AccountOptions) {
    this.options = options;
    this.slots = options.slots;
  }

  /** Weights of all tenants; those that are missing weigh 1. */
  weighAll(weights: ReadonlyMap<string, number>): void {
    this.weights = weights;
    for (const [tenantId, account] of this.accounts) this.reweigh(account, weights.get(tenantId) ?? 1);
  }

  weigh(tenantId: string, weight: number): void {
    this.reweigh(this.of(tenantId), weight);
  }

  /** Counts this tenant among those that use the pool. */
  know(tenantId: string): void {
    this.of(tenantId);
  }

  /** Its weight has no part in anybody's share any more, unless it holds slots. */
  forget(tenantId: string): void {
    const account = this.accounts.get(tenantId);
    if (account === undefined || account.inUse > 0) return;
    this.totalWeight -= account.weight;
    this.accounts.delete(tenantId);
  }

  /** Adds `slots` (negative: gives back) to what a tenant holds. */
  hold(tenantId: string, slots: number): void {
    const account = this.of(tenantId);
    this.bring(account);
    const after = Math.max(0, account.inUse + slots);
    this.slotsInUse += after - account.inUse;
    account.inUse = after;
  }

  /** So many runs were started for this tenant. */
  charge(tenantId: string, runs: number): void {
    const account = this.of(tenantId);
    this.bring(account);
    account.virtualTime = Math.max(account.virtualTime, this.floor) + (runs * START_MS) / account.weight;
  }

  /** Slots held: runs going on, and hints taken but not yet claimed. */
  inUse(tenantId: string): number {
    return this.accounts.get(tenantId)?.inUse ?? 0;
  }

  contender(tenantId: string, wants: number): Contender {
    const account = this.of(tenantId);
    this.bring(account);
    const { weight, inUse, virtualTime } = account;
    return { tenantId, weight, inUse, virtualTime: Math.max(virtualTime, this.floor), wants };
  }

  /** Deals at most `wanted` slots among contenders. Nothing is held yet. */
  share(contenders: readonly Contender[], wanted: number): Allotment[] {
    if (contenders.length === 0) return [];
    const { slots, slotsInUse: inUse, totalWeight } = this;
    const { reservedFraction } = this.options;
    const allotted = shareOut({ slots, inUse, reservedFraction, totalWeight }, this.bound(contenders), wanted);
    if (allotted.length > 0) this.floor = Math.max(this.floor, leastServed(contenders));
    return allotted;
  }

  /** Who comes next, and who then. */
  order(contenders: readonly Contender[]): Contender[] {
    return inOrder(this.bound(contenders));
  }

  /** Forgives what nobody is held back for any longer. */
  private bound(contenders: readonly Contender[]): Contender[] {
    const weight = contenders.reduce((sum, one) => sum + one.weight, 0);
    const most = leastServed(contenders) + (MEMORY_MS * this.slots) / weight;
    return contenders.map((one) => {
      if (one.virtualTime <= most) return one;
      this.of(one.tenantId).virtualTime = most;
      return { ...one, virtualTime: most };
    });
  }

  private of(tenantId: string): Account {
    const known = this.accounts.get(tenantId);
    if (known !== undefined) return known;
    const weight = this.weights.get(tenantId) ?? 1;
    const account = { weight, inUse: 0, virtualTime: this.floor, chargedAt: this.options.now() };
    if (this.accounts.size >= (this.options.capacity ?? 20_000)) this.forgetIdle();
    this.totalWeight += weight;
    this.accounts.set(tenantId, account);
    return account;
  }

  private reweigh(account: Account, weight: number): void {
    if (account.weight === weight) return;
    this.bring(account);
    this.totalWeight += weight - account.weight;
    account.weight = weight;
  }

  /** Up to now. */
  private bring(account: Account): void {
    const now = this.options.now();
    if (account.inUse > 0) {
      account.virtualTime =
        Math.max(account.virtualTime, this.floor) + (account.inUse * (now - account.chargedAt)) / account.weight;
    }
    account.chargedAt = now;
  }

  private forgetIdle(): void {
    for (const tenantId of this.accounts.keys()) this.forget(tenantId);
  }
}

function leastServed(contenders: readonly Contender[]): number {
  return contenders.reduce((least, one) => Math.min(least, one.virtualTime), Number.POSITIVE_INFINITY);
}

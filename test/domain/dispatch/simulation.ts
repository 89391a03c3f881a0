import { SlotAccounts } from "../../../src/domain/dispatch/slot-accounts.ts";
import { type LaneDemand, roomOf, windowOf } from "../../../src/domain/dispatch/window.ts";
import { LanePool } from "../../../src/hints/lanes.ts";

/**
 * A discrete-event simulation of dispatch in virtual time: an outbox, a relay, queues, workers that see nothing of each
 * other. What is decided is decided by the program's own functions: `roomOf`, `LanePool`, `SlotAccounts`.
 */
export type Tenant = {
  id: string;
  weight?: number;
  /** How long its next run takes (ms). */
  takes(): number;
};

export type Start = { tenantId: string; at: number; dueAt: number; lane: number; worker: number };

export type Options = {
  tenants: readonly Tenant[];
  /** Slots of each worker. */
  workers: readonly number[];
  reservedFraction?: number;
  /** Through queues and the relay's window, or straight from the outbox. */
  by?: "queues" | "outbox";
  /** Workers hear of this weight so late; the relay knows at once. */
  weights?: (at: number) => ReadonlyMap<string, number>;
};

type Run = { dueAt: number; lane: number };

/** Runs of one tenant by lane, first in, first out. */
class Backlog {
  length = 0;
  private readonly lanes: { runs: Run[]; from: number }[] = [0, 1, 2].map(() => ({ runs: [], from: 0 }));

  push(run: Run): void {
    this.lanes[run.lane]!.runs.push(run);
    this.length++;
  }

  take(most: number): Run[] {
    const taken: Run[] = [];
    for (const lane of this.lanes) {
      while (taken.length < most && lane.from < lane.runs.length) taken.push(lane.runs[lane.from++]!);
    }
    this.length -= taken.length;
    return taken;
  }
}

type Books = { slots: number; slotMs: number; since: number; takes(): number };
type Worker = { accounts: SlotAccounts; pool: LanePool; free: number };

const RELAY_EVERY_MS = 20;
const REMINDED_EVERY_MS = 3_000;

export class Simulation {
  now = 0;
  readonly starts: Start[] = [];
  private readonly options: Options;
  private readonly workers: Worker[];
  private readonly outbox = new Map<string, Backlog>();
  private readonly queues = new Map<string, Backlog>();
  private readonly books = new Map<string, Books>();
  private waitingRuns = 0;
  private freeSlots: number;
  private turn = 0;
  private readonly events = new Agenda();
  private sequence = 0;
  private idleMs = 0;

  constructor(options: Options) {
    this.options = options;
    this.workers = options.workers.map((slots) => {
      const accounts = new SlotAccounts({
        slots,
        reservedFraction: options.reservedFraction ?? 0.1,
        now: () => this.now,
      });
      return { accounts, pool: new LanePool({ accounts, capacity: 1_000 }), free: slots };
    });
    this.freeSlots = options.workers.reduce((sum, slots) => sum + slots, 0);
    for (const { id, takes } of options.tenants) {
      this.outbox.set(id, new Backlog());
      this.queues.set(id, new Backlog());
      this.books.set(id, { slots: 0, slotMs: 0, since: 0, takes });
    }
    this.repeat(REMINDED_EVERY_MS, () => this.remind());
    if (options.by !== "outbox") this.repeat(RELAY_EVERY_MS, () => this.relay());
  }

  /** So many runs of a tenant become due now. */
  add(tenantId: string, runs: number, lane = 1): void {
    const waiting = this.outbox.get(tenantId)!;
    for (let n = 0; n < runs; n++) waiting.push({ dueAt: this.now, lane });
    this.waitingRuns += runs;
    if (this.options.by !== "outbox") this.relay();
    this.fetchAll();
  }

  at(when: number, action: () => void): void {
    this.events.push(when, action);
  }

  repeat(everyMs: number, action: () => void, from = this.now): void {
    const again = () => {
      action();
      this.events.push(this.now + everyMs, again);
    };
    this.events.push(from, again);
  }

  until(end: number): void {
    for (let next = this.events.pop(end); next !== undefined; next = this.events.pop(end)) {
      this.passTo(next.at);
      next.action();
    }
    this.passTo(end);
  }

  /** Slot time of each tenant from here on (ms), and of slots that were free while somebody's runs were due. */
  measure(): { of(tenantId: string): number; idleMs(): number } {
    const before = new Map([...this.books].map(([id]) => [id, this.slotMsOf(id)]));
    const idleBefore = this.idleMs;
    return {
      of: (tenantId) => this.slotMsOf(tenantId) - before.get(tenantId)!,
      idleMs: () => this.idleMs - idleBefore,
    };
  }

  inUse(tenantId: string): number {
    return this.books.get(tenantId)!.slots;
  }

  free(): number {
    return this.freeSlots;
  }

  waiting(tenantId: string): number {
    return this.outbox.get(tenantId)!.length + this.queues.get(tenantId)!.length;
  }

  private slotMsOf(tenantId: string): number {
    const { slots, slotMs, since } = this.books.get(tenantId)!;
    return slotMs + slots * (this.now - since);
  }

  private occupy(tenantId: string, slots: 1 | -1): void {
    const books = this.books.get(tenantId)!;
    books.slotMs += books.slots * (this.now - books.since);
    books.since = this.now;
    books.slots += slots;
    this.freeSlots -= slots;
  }

  private passTo(when: number): void {
    if (this.waitingRuns > 0) this.idleMs += this.freeSlots * (when - this.now);
    this.now = when;
  }

  private weights(): ReadonlyMap<string, number> {
    return this.options.weights?.(this.now) ?? new Map(this.options.tenants.map(({ id, weight = 1 }) => [id, weight]));
  }

  private remind(): void {
    for (const { accounts, pool } of this.workers) {
      accounts.weighAll(this.weights());
      for (const [id, queue] of this.queues) if (queue.length > 0) pool.remind(id);
    }
    this.fetchAll();
  }

  private relay(): void {
    const due = [...this.outbox].filter(([, runs]) => runs.length > 0);
    if (due.length === 0) return;
    const demands = due.map(([tenantId]): LaneDemand => {
      return {
        tenantId,
        class: "short",
        weight: this.weights().get(tenantId) ?? 1,
        running: this.inUse(tenantId),
        maxRunning: null,
        published: this.queues.get(tenantId)!.length,
        publishedLate: 0,
      };
    });
    const slots = this.options.workers.reduce((sum, one) => sum + one, 0);
    const rooms = roomOf(demands, windowOf(slots));
    this.sequence++;
    due.forEach(([tenantId, runs], n) => {
      const some = runs.take(rooms[n]!.runs);
      if (some.length === 0) return;
      for (const run of some) this.queues.get(tenantId)!.push(run);
      for (const { pool } of this.workers) pool.published(tenantId, this.sequence);
    });
    this.fetchAll();
  }

  private fetchAll(): void {
    const fetch = this.options.by === "outbox" ? this.fetchDirectly : this.fetch;
    // Whoever asks first is not always the same one.
    const first = this.turn++ % this.workers.length;
    for (let n = 0; n < this.workers.length; n++) fetch.call(this, (first + n) % this.workers.length);
  }

  private fetch(index: number): void {
    const worker = this.workers[index]!;
    while (worker.free > 0) {
      const picks = worker.pool.pick(worker.free);
      if (picks.length === 0) return;
      for (const pick of picks) {
        const { tenantId } = pick.lane;
        const runs = this.queues.get(tenantId)!.take(pick.hints);
        worker.pool.delivered(
          pick,
          runs.map(() => 1),
        );
        if (runs.length < pick.hints) worker.pool.empty(pick);
        for (const run of runs) this.start(index, tenantId, run);
        // The hints are acknowledged.
        worker.accounts.hold(tenantId, -runs.length);
      }
    }
  }

  private fetchDirectly(index: number): void {
    const worker = this.workers[index]!;
    const lanes = [...this.outbox].filter(([, runs]) => runs.length > 0);
    for (const [tenantId] of lanes) worker.accounts.weigh(tenantId, this.weights().get(tenantId) ?? 1);
    const contenders = lanes.map(([tenantId, runs]) => worker.accounts.contender(tenantId, runs.length));
    for (const { tenantId, slots } of worker.accounts.share(contenders, worker.free)) {
      worker.accounts.charge(tenantId, slots);
      for (const run of this.outbox.get(tenantId)!.take(slots)) this.start(index, tenantId, run);
    }
  }

  private start(index: number, tenantId: string, run: Run): void {
    const worker = this.workers[index]!;
    const { takes } = this.books.get(tenantId)!;
    worker.accounts.hold(tenantId, 1);
    worker.free--;
    this.waitingRuns--;
    this.occupy(tenantId, 1);
    this.starts.push({ tenantId, at: this.now, dueAt: run.dueAt, lane: run.lane, worker: index });
    this.events.push(this.now + takes(), () => {
      worker.accounts.hold(tenantId, -1);
      worker.free++;
      this.occupy(tenantId, -1);
      if (this.options.by === "outbox") this.fetchDirectly(index);
      else this.fetch(index);
    });
  }
}

/** Events by time; those of one instant in the order in which they were made. */
class Agenda {
  private readonly heap: { at: number; made: number; action(): void }[] = [];
  private made = 0;

  push(at: number, action: () => void): void {
    const { heap } = this;
    heap.push({ at, made: this.made++, action });
    for (let child = heap.length - 1; child > 0; ) {
      const parent = (child - 1) >> 1;
      if (!this.isBefore(child, parent)) return;
      this.swap(child, parent);
      child = parent;
    }
  }

  pop(until: number): { at: number; action(): void } | undefined {
    const { heap } = this;
    const first = heap[0];
    if (first === undefined || first.at > until) return undefined;
    const last = heap.pop()!;
    if (heap.length > 0) heap[0] = last;
    for (let at = 0; ; ) {
      let least = at;
      for (const child of [2 * at + 1, 2 * at + 2]) {
        if (child < heap.length && this.isBefore(child, least)) least = child;
      }
      if (least === at) return first;
      this.swap(at, least);
      at = least;
    }
  }

  private isBefore(one: number, other: number): boolean {
    const [a, b] = [this.heap[one]!, this.heap[other]!];
    return a.at < b.at || (a.at === b.at && a.made < b.made);
  }

  private swap(one: number, other: number): void {
    [this.heap[one], this.heap[other]] = [this.heap[other]!, this.heap[one]!];
  }
}

/** 1: all have the same; 1/n: one has all. */
export function jain(shares: readonly number[]): number {
  const sum = shares.reduce((total, one) => total + one, 0);
  return sum ** 2 / (shares.length * shares.reduce((total, one) => total + one ** 2, 0));
}

import { describe, expect, it } from "vitest";
import { randomFrom } from "../../support/random.ts";
import { jain, Simulation, type Tenant } from "./simulation.ts";

const HOUR = 3_600_000;
const WARM_UP_MS = 20_000;

const tenants = (count: number, of: (n: number) => Omit<Tenant, "id">): Tenant[] =>
  Array.from({ length: count }, (_, n) => ({ id: `t${n}`, ...of(n) }));
const quick = () => 100;
const weightOf = (tenant: Tenant) => tenant.weight ?? 1;

/** Tenants that always have work: slot time for its weight of each, after a while, and the index over all. */
function saturate(options: ConstructorParameters<typeof Simulation>[0], forMs = 30_000) {
  const simulation = new Simulation(options);
  const { tenants } = options;
  simulation.repeat(100, () => {
    for (const { id } of tenants) if (simulation.waiting(id) < 400) simulation.add(id, 400);
  });
  simulation.until(WARM_UP_MS);
  const measured = simulation.measure();
  simulation.until(WARM_UP_MS + forMs);
  const shares = tenants.map((tenant) => measured.of(tenant.id) / weightOf(tenant));
  return { simulation, shares, index: jain(shares), idleMs: measured.idleMs() };
}

describe.each(["queues", "outbox"] as const)("tenants that always have work, by %s", (by) => {
  it.each([
    ["equal ones", 20, [30, 30], () => 1],
    ["weights of 1 to 10", 20, [30, 30], (n: number) => 1 + (n % 10)],
    [
      "weights of 1 to 10 in four small workers, where most shares are less than a slot",
      20,
      [10, 10, 10, 10],
      (n: number) => 1 + (n % 10),
    ],
    ["weights of 1 to 10 and four slots", 20, [4], (n: number) => 1 + (n % 10)],
  ] as const)("%s: slot time goes by weight, and no slot is idle", (_, count, workers, weight) => {
    const seen = saturate({ by, workers, tenants: tenants(count, (n) => ({ weight: weight(n), takes: quick })) });
    expect(seen.index).toBeGreaterThanOrEqual(0.99);
    expect(seen.idleMs).toBe(0);
  });

  it("runs of an hour beside runs of 100 ms: each has its share, whichever came first", () => {
    const longOnes = (n: number) => ({ weight: 1 + (n % 10), takes: n === 9 ? () => HOUR : quick });
    const seen = saturate({ by, workers: [30, 30], tenants: tenants(20, longOnes) });
    expect(seen.index).toBeGreaterThanOrEqual(0.99);
    expect(seen.idleMs).toBe(0);
  });

  it("whatever the weights and durations: slot time goes by weight, and no slot is idle", () => {
    for (let seed = 1; seed <= 12; seed++) {
      const random = randomFrom(seed);
      const whole = (from: number, to: number) => from + Math.floor(random() * (to - from + 1));
      const workers = Array.from({ length: whole(1, 4) }, () => whole(4, 24));
      const slots = workers.reduce((sum, one) => sum + one, 0);
      const some = tenants(whole(2, 16), () => ({ weight: whole(1, 10), takes: () => 0 }));
      const weights = some.reduce((sum, one) => sum + weightOf(one), 0);
      const all = some.map((tenant) => {
        // Longer runs need a longer look: what is measured is slot time, and it comes by whole runs.
        const share = (slots * weightOf(tenant)) / weights / workers.length;
        const longest = Math.min(1_000, 1_000 * share);
        return { ...tenant, takes: () => 20 + random() * longest };
      });
      const seen = saturate({ by, workers, tenants: all }, 60_000);
      expect(seen.index, `seed ${seed}`).toBeGreaterThanOrEqual(0.99);
      expect(seen.idleMs, `seed ${seed}`).toBe(0);
    }
  });

  // In a pool of fewer than ten slots there is no reserve, which would hold everybody to its share by itself.
  it("a tenant that borrowed every slot for ten minutes is not held back for it longer than ten seconds", () => {
    const borrowed = () => (simulation.now < 1_000 ? 600_000 : 100);
    const both = [{ id: "t0", takes: borrowed }, ...tenants(2, () => ({ takes: quick })).slice(1)];
    const simulation: Simulation = new Simulation({ by, workers: [4, 4], tenants: both });
    simulation.add("t0", 8);
    simulation.until(10_000);
    simulation.repeat(100, () => {
      for (const { id } of both) if (simulation.waiting(id) < 400) simulation.add(id, 400);
    });
    simulation.until(610_000);
    const later = simulation.measure();
    simulation.until(630_000);
    expect(jain([later.of("t0"), later.of("t1")])).toBeGreaterThan(0.99);
  });

  it("a tenant that idled has saved nothing up", () => {
    const both = tenants(2, () => ({ takes: quick }));
    const simulation = new Simulation({ by, workers: [4, 4], tenants: both });
    const feed = (id: string) => {
      if (simulation.waiting(id) < 400) simulation.add(id, 400);
    };
    feed("t1");
    simulation.repeat(100, () => feed("t0"));
    simulation.until(600_000);
    const onReturn = simulation.measure();
    simulation.repeat(100, () => feed("t1"));
    simulation.until(610_000);
    // Half of what there is, and one round of the slots beside it at most.
    expect(onReturn.of("t1")).toBeLessThanOrEqual(5_000 * 8 + 8 * 100);
    expect(onReturn.of("t1")).toBeGreaterThan(4_500 * 8);
  });
});

/**
 * The bound. A tenant that holds nothing and has not had more than others stands before everybody: at `floor`, with
 * nothing in use. Any other gives way as soon as it holds one slot, so at most one start of each other tenant that stands
 * there as well comes before its own. Slots that become free go to them in that order; with S slots of which each is given
 * back within d, n such tenants have all started after ⌈n / S⌉ · d.
 */
describe("how long a small tenant waits", () => {
  it("beside one that fills every slot: for one slot, and nobody starts before it", () => {
    for (const workers of [[4], [2, 2], [1, 1, 1, 1], [10, 10]]) {
      const simulation = new Simulation({ workers, tenants: tenants(2, () => ({ takes: quick })) });
      simulation.add("t0", 5_000);
      simulation.until(5_050);
      simulation.add("t1", 1);
      const before = simulation.starts.length;
      simulation.until(5_200);
      const after = simulation.starts.slice(before);
      const place = after.findIndex((start) => start.tenantId === "t1");
      const slots = workers.reduce((sum, one) => sum + one, 0);
      expect(place, `workers ${workers}`).toBeGreaterThanOrEqual(0);
      // A worker looks when a slot of its own is free; others may have looked just before.
      expect(place, `workers ${workers}`).toBeLessThanOrEqual(slots);
      expect(after[place]!.at - after[place]!.dueAt).toBeLessThanOrEqual(100);
    }
  });

  it("twenty small ones beside a big one: within one round of the slots, however long the backlog", () => {
    const random = randomFrom(5);
    const all = tenants(21, (n) => ({ takes: n === 0 ? () => 400 : () => 400 }));
    const simulation = new Simulation({ workers: [50, 50], tenants: all });
    simulation.add("t0", 20_000);
    for (let n = 1; n <= 20; n++) simulation.repeat(200, () => simulation.add(`t${n}`, 1), random() * 200);
    simulation.until(30_000);
    const small = simulation.starts.filter((start) => start.tenantId !== "t0");
    const waits = small.map((start) => start.at - start.dueAt);
    expect(small.length).toBeGreaterThan(2_900);
    // ⌈20 / 100⌉ · 400 ms
    expect(Math.max(...waits)).toBeLessThanOrEqual(400);
    // The reserve: the big one is above its share, and never takes it.
    expect(simulation.free()).toBeLessThanOrEqual(10);
  });

  it("runs of an hour cannot capture a pool: the reserve stays for whoever comes", () => {
    for (const by of ["queues", "outbox"] as const) {
      const all = tenants(4, (n) => ({ takes: n === 0 ? () => HOUR : quick }));
      const simulation = new Simulation({ by, workers: [20, 20], tenants: all });
      // The others are known: each has had a run before.
      for (const { id } of all) simulation.add(id, 1);
      simulation.until(4_000);
      simulation.add("t0", 1_000);
      simulation.until(60_000);
      // A tenth of the slots of each worker.
      expect(simulation.inUse("t0")).toBe(36);
      for (const { id } of all.slice(1)) simulation.add(id, 10);
      simulation.until(70_000);
      const waits = simulation.starts.filter((one) => one.dueAt === 60_000).map((one) => one.at - one.dueAt);
      expect(waits).toHaveLength(30);
      // ⌈30 / 4⌉ · 100 ms
      expect(Math.max(...waits)).toBeLessThanOrEqual(800);
    }
  });

  it("a tenant alone uses every slot, and one that shares borrows what the other leaves", () => {
    const alone = new Simulation({ workers: [4], tenants: tenants(1, () => ({ takes: quick })) });
    alone.add("t0", 100);
    alone.until(1_000);
    expect(alone.inUse("t0")).toBe(4);
    expect(alone.measure().idleMs()).toBe(0);

    const shared = new Simulation({ workers: [4], tenants: tenants(2, () => ({ takes: quick })) });
    shared.add("t1", 1);
    shared.add("t0", 1_000);
    shared.until(5_000);
    expect(shared.inUse("t0")).toBe(4);
  });

  it("what is urgent to a tenant comes before its own work and before nobody else's", () => {
    const all = tenants(2, () => ({ takes: quick }));
    const simulation = new Simulation({ workers: [10], tenants: all });
    simulation.add("t0", 500, 0);
    simulation.add("t1", 100, 1);
    simulation.add("t1", 100, 0);
    simulation.until(2_000);
    const early = simulation.starts.filter((one) => one.at > 0 && one.at <= 1_500);
    const of = (tenantId: string) => early.filter((one) => one.tenantId === tenantId);
    expect(jain([of("t0").length, of("t1").length])).toBeGreaterThan(0.99);
    const [urgent, rest] = [0, 1].map((lane) =>
      of("t1")
        .filter((one) => one.lane === lane)
        .map((one) => one.at),
    );
    expect(urgent!.length).toBeGreaterThan(0);
    // What stood in the queue before the urgent ones came was published by its own order.
    expect(rest!.filter((at) => at > urgent![0]! && at < urgent!.at(-1)!)).toEqual([]);
  });

  it("a weight that is changed is in force three seconds later", () => {
    const all = tenants(2, () => ({ takes: quick }));
    const heavier = new Map([["t1", 3]]);
    const weights = (at: number) => (at < 30_000 ? new Map<string, number>() : heavier);
    const simulation = new Simulation({ workers: [20, 20], tenants: all, weights });
    simulation.repeat(100, () => {
      for (const { id } of all) if (simulation.waiting(id) < 400) simulation.add(id, 400);
    });
    simulation.until(30_000 + 3_000 + 200);
    const after = simulation.measure();
    simulation.until(38_200);
    expect(after.of("t1") / after.of("t0")).toBeCloseTo(3, 0);
  });
});

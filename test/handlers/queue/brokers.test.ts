import { beforeEach, describe, expect, it } from "vitest";
import { type BrokerConnection, createBrokers } from "../../../src/handlers/queue/brokers.ts";
import { type Clock, systemClock } from "../../../src/kernel/clock.ts";

/** Connections that a test opens, answers on and breaks. */
type Link = BrokerConnection & { alive: boolean; closed: boolean };

type Timed = { dueMs: number; fn: () => void };
let nowMs: number;
let timers: Set<Timed>;
let links: Link[];

const clock: Clock = {
  ...systemClock,
  monotonic: () => nowMs,
  after(delayMs, fn) {
    const timed = { dueMs: nowMs + delayMs, fn };
    timers.add(timed);
    return { cancel: () => void timers.delete(timed) };
  },
};

function pass(ms: number): void {
  nowMs += ms;
  for (const one of [...timers].filter(({ dueMs }) => dueMs <= nowMs)) {
    timers.delete(one);
    one.fn();
  }
}

beforeEach(() => {
  nowMs = 0;
  timers = new Set();
  links = [];
});

const never = new Promise<never>(() => undefined);
const signal = new AbortController().signal;

async function openLink(): Promise<Link> {
  const link: Link = {
    alive: true,
    closed: false,
    close() {
      this.closed = true;
      this.alive = false;
    },
  };
  links.push(link);
  return link;
}

const brokersOf = (options: { mostIdle?: number } = {}) =>
  createBrokers<Link>({ clock, idleMs: 30_000, longestMs: 600_000, ...options });
const useOf = (key: string, work: (link: Link) => Promise<unknown> = async () => "done") => ({
  key,
  open: openLink,
  work,
  timeoutMs: 5_000,
  signal,
});
const settled = () => new Promise(setImmediate);

describe("connections to brokers", () => {
  it("are one for each broker, closed once they were idle, and kept while somebody uses them", async () => {
    const brokers = brokersOf();
    let finish = (_: unknown) => {};
    const long = brokers.use(useOf("a", () => new Promise((done) => (finish = done))));
    await brokers.use(useOf("a"));
    await brokers.use(useOf("b"));
    expect(links).toHaveLength(2);
    pass(4_000);
    finish("done");
    await long;
    pass(29_000);
    expect(links.map((link) => link.closed)).toEqual([false, true]);
    pass(1_000);
    expect([links[0]!.closed, brokers.open, timers.size]).toEqual([true, 0, 0]);
  });

  it("are few while nobody uses them: the one that was idle for longest goes", async () => {
    const brokers = brokersOf({ mostIdle: 2 });
    for (const key of ["a", "b", "a", "c"]) await brokers.use(useOf(key));
    expect(links.map((link) => link.closed)).toEqual([false, true, false]);
    expect(brokers.open).toBe(2);
  });

  it("are opened anew once they have ended or are old", async () => {
    const brokers = brokersOf();
    await brokers.use(useOf("a"));
    links[0]!.alive = false;
    await brokers.use(useOf("a"));
    expect(links).toHaveLength(2);
    for (let i = 0; i < 30; i++) {
      pass(20_001);
      await brokers.use(useOf("a"));
    }
    expect(links).toHaveLength(3);
    expect(links[1]!.closed).toBe(true);
  });

  it("that cannot be opened are nobody's, and the next one tries again", async () => {
    const brokers = brokersOf();
    const refused = { ...useOf("a"), open: () => Promise.reject(new Error("refused")) };
    await expect(brokers.use(refused)).rejects.toMatchObject({ code: "broker-unavailable", transient: true });
    expect(brokers.open).toBe(0);
    expect(await brokers.use(useOf("a"))).toBe("done");
  });

  it("which keep silent are given up; one asks again while the others fail, until there is an answer", async () => {
    const brokers = brokersOf();
    const silent = Array.from({ length: 3 }, () => brokers.use(useOf("a", () => never)).catch((error) => error.code));
    await settled();
    pass(5_000);
    expect(await Promise.all(silent)).toEqual(Array(3).fill("broker-timeout"));
    expect(links[0]!.closed).toBe(true);
    let answer = (_: unknown) => {};
    const asking = brokers.use(useOf("a", () => new Promise((done) => (answer = done))));
    await expect(brokers.use(useOf("a"))).rejects.toMatchObject({ code: "broker-unavailable", retryAfterMs: 5_000 });
    expect(await brokers.use(useOf("b"))).toBe("done");
    await settled();
    answer("at last");
    expect(await asking).toBe("at last");
    expect(await Promise.all([brokers.use(useOf("a")), brokers.use(useOf("a"))])).toEqual(["done", "done"]);
  });

  it("which nobody takes up in time keep silent, too", async () => {
    const brokers = brokersOf();
    const timeout = Object.assign(new Error("no connection"), { code: "ETIMEDOUT" });
    await expect(brokers.use({ ...useOf("a"), open: () => Promise.reject(timeout) })).rejects.toMatchObject({
      code: "broker-unavailable",
    });
    const asking = brokers.use(useOf("a"));
    await expect(brokers.use(useOf("a"))).rejects.toMatchObject({ retryAfterMs: 5_000 });
    expect(await asking).toBe("done");
  });

  it("are closed by the time at which opening has succeeded for nobody", async () => {
    const brokers = brokersOf();
    let opened = (_: Link) => {};
    const late = brokers.use({ ...useOf("a"), open: () => new Promise<Link>((done) => (opened = done)) });
    const failed = expect(late).rejects.toMatchObject({ code: "broker-timeout" });
    pass(5_000);
    await failed;
    opened(await openLink());
    await settled();
    expect([links[0]!.closed, brokers.open]).toEqual([true, 0]);
  });

  it("end with their worker, and none is opened any more", async () => {
    const brokers = brokersOf();
    let told: AbortSignal | undefined;
    await brokers.use(useOf("a"));
    const opening = brokers.use({
      ...useOf("b"),
      open: (given) => {
        told = given;
        return new Promise((_, reject) => given.addEventListener("abort", () => reject(new Error("given up"))));
      },
    });
    brokers.close();
    await expect(opening).rejects.toMatchObject({ code: "broker-unavailable" });
    expect([links[0]!.closed, told!.aborted, brokers.open]).toEqual([true, true, 0]);
    await expect(brokers.use(useOf("a"))).rejects.toMatchObject({ transient: true });
    expect([links.length, timers.size]).toEqual([1, 0]);
  });

  it("that comes too late for one delivery, and after another was told to stop, says nothing for them", async () => {
    const opening = Promise.withResolvers<void>();
    const stop = new AbortController();
    const brokers = brokersOf();
    const said: string[] = [];
    const deliver = (name: string, change: { timeoutMs?: number; signal?: AbortSignal }) =>
      brokers.use({
        ...useOf("a", async () => void said.push(name)),
        open: async () => {
          await opening.promise;
          return openLink();
        },
        ...change,
      });
    const patient = deliver("patient", {});
    const hasty = deliver("hasty", { timeoutMs: 100 });
    const stopped = deliver("stopped", { signal: stop.signal });
    pass(100);
    await expect(hasty).rejects.toMatchObject({ message: expect.stringContaining("no connection") });
    stop.abort("canceled");
    await expect(stopped).rejects.toBe("canceled");
    opening.resolve();
    await patient;
    expect(said).toEqual(["patient"]);
  });
});

import { describe, expect, it, onTestFinished } from "vitest";
import { type Crowds, createCrowds, type Waiting } from "../../../src/api/worker/crowds.ts";
import { createPolls } from "../../../src/api/worker/polls.ts";
import type { RemoteHint } from "../../../src/authority/dispatch/remote.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { createWorld, definitionOf } from "../../support/world.ts";

type Poller = Waiting & { heard: (RemoteHint[] | Error)[] };

/** A poll; what it hears in the end is written down. */
function poller(of: Crowds, tenantId: string, jobs: readonly string[], slots = 1): Poller {
  const heard: Poller["heard"] = [];
  const end = (said: RemoteHint[] | Error) => {
    heard.push(said);
    of.leave(one);
  };
  const one: Poller = { tenantId, jobs, slots, heard, answer: end, refuse: (error) => end(error as Error) };
  return one;
}

const names = (first: number, many: number) => Array.from({ length: many }, (_, i) => `job-${first + i}@1`);
const hint = (tenantId: string, job: string): RemoteHint => ({ rowId: 1n, epoch: 1, tenantId, job });
const flood = (of: Crowds, tenantId: string) => {
  for (let i = 0; i < 20; i++) of.join(poller(of, tenantId, names(i * 100, 100)));
};

describe("workers of many tenants that wait", () => {
  it("are looked for a share at a time: whoever floods it, the next look is for everybody", () => {
    const all = createCrowds();
    flood(all, "a");
    all.takeTurn();
    const mine = poller(all, "b", ["mine@1"]);
    all.join(mine);
    const turn = all.takeTurn();
    expect(turn.map(({ tenantId, jobs }) => [tenantId, jobs.length])).toEqual([
      ["a", 200],
      ["b", 1],
    ]);
    expect(all.deal(hint("b", "mine@1"))).toBe(true);
    for (const one of turn) all.settle(one);
    expect(mine.heard).toEqual([[hint("b", "mine@1")]]);
  });

  it("have their turn with everything they ask for, tenants as well as jobs, before anything is asked for twice", () => {
    const all = createCrowds();
    for (const tenantId of ["a", "b", "c", "d", "e", "f", "g"]) flood(all, tenantId);
    const seen = new Map<string, number>();
    for (let look = 0; look < 14; look++) {
      const turn = all.takeTurn();
      expect(turn.reduce((sum, one) => sum + one.jobs.length, 0)).toBe(1_000);
      for (const { tenantId, jobs } of turn) {
        for (const job of jobs) seen.set(`${tenantId} ${job}`, (seen.get(`${tenantId} ${job}`) ?? 0) + 1);
      }
    }
    expect(all.isRoundOver()).toBe(true);
    expect([seen.size, Math.max(...seen.values())]).toEqual([14_000, 1]);
    expect(all.takeTurn()).toEqual([]);
    all.startRound();
    expect(all.takeTurn().length).toBe(5);
  });

  it("are not sent away before all of their jobs were looked for, nor for what was looked for before they came", () => {
    const all = createCrowds();
    all.join(poller(all, "a", names(0, 150)));
    const early = all.takeTurn();
    const late = poller(all, "a", names(100, 100));
    all.join(late);
    all.end(late);
    for (const one of early) all.settle(one);
    expect(late.heard).toEqual([]);
    for (const one of all.takeTurn()) all.settle(one);
    expect(late.heard).toEqual([[]]);
  });

  it("are as many as there is room for: more of a tenant, or of its jobs, are told when to ask again", () => {
    const all = createCrowds();
    flood(all, "a");
    expect(() => all.join(poller(all, "a", ["one-more@1"]))).toThrow("2000 different jobs already; allowed: 2000");
    for (let i = 20; i < 1_000; i++) all.join(poller(all, "a", ["job-7@1"]));
    expect(() => all.join(poller(all, "a", ["job-7@1"]))).toThrow("1000 workers of the tenant wait here already");
    all.join(poller(all, "b", ["one-more@1"]));
    for (const one of all.everybody()) one.answer([]);
    expect(all.isEmpty()).toBe(true);
  });
});

it("a tenant whose jobs cannot be looked for is in nobody else's way", async () => {
  const world = await createWorld();
  const polls = createPolls({ authority: world.authority, clock: systemClock });
  onTestFinished(async () => {
    polls.close();
    await world.close();
  });
  const scheduleId = await world.newSchedule(
    definitionOf({ class: "remote", job: { kind: "remote", name: "test.mine" } }),
  );
  await world.makeDue(scheduleId);
  await world.materialize([scheduleId]);
  const gone = new AbortController().signal;
  const other = crypto.randomUUID();
  // No name that the API lets through: the database will not take it.
  const broken = polls.wait({ tenantId: other, jobs: ["\0"], slots: 1, waitMs: 0, gone });
  const mine = polls.wait({ tenantId: world.tenantId, jobs: ["test.mine@1"], slots: 1, waitMs: 30_000, gone });
  await expect(broken).rejects.toThrow("invalid byte sequence");
  expect(await mine).toMatchObject([{ job: "test.mine@1", tenantId: world.tenantId }]);
});

it("workers that wait have the work spread over them, and nobody is told at once again what somebody was told", async () => {
  const world = await createWorld();
  // Time stands still: what was told stays told.
  const polls = createPolls({ authority: world.authority, clock: { ...systemClock, monotonic: () => 0 } });
  onTestFinished(async () => {
    polls.close();
    await world.close();
  });
  const gone = new AbortController().signal;
  const ask = (waitMs: number) =>
    polls.wait({ tenantId: world.tenantId, jobs: ["test.mine@1"], slots: 5, waitMs, gone });
  const waiting = [ask(30_000), ask(30_000)];
  for (let n = 0; n < 2; n++) {
    const scheduleId = await world.newSchedule(
      definitionOf({ class: "remote", job: { kind: "remote", name: "test.mine" } }),
    );
    await world.makeDue(scheduleId);
    await world.materialize([scheduleId]);
    // One by one, so that the first is not told of both.
    polls.wake();
    await Promise.race(waiting.slice(n));
  }
  const told = await Promise.all(waiting);
  expect(told.map((hints) => hints.length)).toEqual([1, 1]);
  expect(new Set(told.flat().map(({ rowId }) => rowId)).size).toBe(2);
  expect(await ask(0)).toEqual([]);
});

it("a look that took a minute is followed by the next within a second", async () => {
  const world = await createWorld();
  let aheadMs = 0;
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + aheadMs };
  const { db } = world.authority;
  const busy: typeof db.query = (statement, values) => {
    aheadMs += 60_000;
    return db.query(statement, values);
  };
  const polls = createPolls({ authority: { ...world.authority, db: { ...db, query: busy } }, clock });
  onTestFinished(async () => {
    polls.close();
    await world.close();
  });
  const gone = new AbortController().signal;
  const ask = () => polls.wait({ tenantId: world.tenantId, jobs: ["test.mine@1"], slots: 1, waitMs: 0, gone });
  expect(await ask()).toEqual([]);
  expect(aheadMs).toBeGreaterThan(0);
  expect(await ask()).toEqual([]);
});

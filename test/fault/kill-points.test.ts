import { expect, test } from "vitest";
import type { Authority } from "../../src/authority/authority.ts";
import { announceWorker } from "../../src/authority/dispatch/presence.ts";
import type { Instant } from "../../src/kernel/clock.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import { createPublishMarked } from "../../src/loops/publish-marked.ts";
import { createRelay } from "../../src/loops/relay.ts";
import { createScanner } from "../../src/loops/scanner.ts";
import { createWindows } from "../../src/loops/windows.ts";
import { startHintWorld } from "../hints/world.ts";
import { randomFrom } from "../support/random.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { allSucceed, startNode, until } from "../support/system.ts";
import { createWorld } from "../support/world.ts";
import { createLedger } from "./ledger.ts";

const SCHEDULES = 50;
const MINUTES = 10;
const KILLS = 200;
const STEP_MS = (MINUTES * 60_000) / KILLS;
/** Everywhere a scanner or a relay can die: with its transaction, or between the commit and Redis. */
const POINTS = [
  "materialize:cursors-locked",
  "materialize:written",
  "scanner:committed",
  "publish:marked",
  "relay:committed",
] as const;

class Killed extends Error {}

/** A process that dies at the n-th point it reaches: its open transaction is aborted, what it committed stays. */
function processOf(authority: Authority, n: number, now: () => Instant): Authority {
  let reached = 0;
  return {
    ...authority,
    faults: {
      reach(name) {
        if (++reached === n) throw new Killed(name);
        return undefined;
      },
    },
    // These ten minutes pass without waiting: they are the past ten, and here is where in them we are.
    transact: (verb, work) => authority.transact(verb, (tx) => work({ ...tx, authorityNow: async () => now() })),
  };
}

if (redisAvailable) {
  test("B26 (4) 200 deaths at random points in ten minutes of 50 minutely schedules: every instant once, and the outbox empties", async ({
    onTestFinished,
  }) => {
    const world = await createWorld();
    const redis = testRedis();
    const hints = await startHintWorld(redis);
    onTestFinished(async () => {
      await hints.stop();
      await world.check();
      await world.close();
    });
    await announceWorker(world.authority, {
      id: mintId(Date.now(), 0),
      name: "worker-a",
      slots: { short: { slots: 2_000, p95Ms: 1_000 } },
      version: "0",
    });
    // Ten whole minutes that are over, each schedule on a second of its own.
    const startAt = Math.floor(Date.now() / 60_000) * 60_000 - (MINUTES + 1) * 60_000;
    const ids: Uuid[] = [];
    for (let n = 0; n < SCHEDULES; n++) {
      const second = Math.floor((n * 60) / SCHEDULES);
      const id = await world.newSchedule({
        rule: { kind: "cron", expression: `${second} * * * * *`, seconds: true, zone: "Etc/UTC" },
        job: { kind: "function", name: "test.count", version: 1 },
        overlap: { policy: "allow" },
      });
      await world.admin.query("update schedule_cursor set next_run_at = $2, next_due_at = $2 where schedule_id = $1", [
        id,
        new Date(startAt + second * 1000),
      ]);
      ids.push(id);
    }

    const random = randomFrom(26);
    const killed = new Map<string, number>();
    let nowAt = startAt;
    const publishMarked = createPublishMarked(world.authority, hints.publisher);
    const live = async (n: number) => {
      const authority = processOf(world.authority, n, () => nowAt);
      // Now and then the scanner has no room to publish what it makes: that is when the relay has work.
      const room = createWindows(authority, { available: () => random() < 0.5 });
      const signal = new AbortController().signal;
      const windows = createWindows(authority, { available: () => true });
      try {
        await createScanner({ authority, id: mintId(Date.now(), 0), windows: room, publishMarked }).pass(signal);
        await createRelay({ authority, redis: { available: () => true }, windows, publishMarked }).pass(signal);
      } catch (error) {
        if (!(error instanceof Killed)) throw error;
        killed.set(error.message, (killed.get(error.message) ?? 0) + 1);
      }
    };
    const deaths = () => [...killed.values()].reduce((sum, n) => sum + n, 0);
    for (let step = 1; step <= KILLS; step++) {
      nowAt = startAt + step * STEP_MS - 1;
      await live(1 + Math.floor(random() * POINTS.length));
      // It lived too shortly to get there: the next one dies at once.
      if (deaths() < step) await live(1);
    }
    nowAt = startAt + MINUTES * 60_000 - 1;
    await live(Number.POSITIVE_INFINITY);
    expect(deaths()).toBe(KILLS);
    for (const point of POINTS) expect(killed.get(point), point).toBeGreaterThan(KILLS / 20);

    const { rows } = await world.admin.query(
      "select schedule_id, array_agg(scheduled_at order by scheduled_at) as instants from run group by schedule_id",
    );
    expect(rows).toHaveLength(SCHEDULES);
    for (const { schedule_id, instants } of rows as { schedule_id: Uuid; instants: Date[] }[]) {
      const second = Math.floor((ids.indexOf(schedule_id) * 60) / SCHEDULES);
      expect(instants.map((at) => at.getTime())).toEqual(
        Array.from({ length: MINUTES }, (_, minute) => startAt + minute * 60_000 + second * 1000),
      );
    }

    // Hints that were marked and never sent are found, and everything is executed once.
    const ledger = createLedger();
    await world.admin.query("delete from worker");
    await world.admin.query("update schedule set status = 'paused'");
    await world.admin.query("update schedule_cursor set next_due_at = null");
    const node = await startNode({ url: world.url, redis, roles: ["relay", "sweeper", "worker"], jobs: [ledger.job] });
    try {
      await allSucceed(world.admin, SCHEDULES * MINUTES);
      ledger.expectEachOnce(SCHEDULES * MINUTES);
      await until("the outbox is empty", async () => (await world.outbox()).length === 0);
    } finally {
      await node.stop();
    }
  });
}

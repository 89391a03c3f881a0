import { afterEach, beforeEach, expect, test } from "vitest";
import { establishRedisEpoch } from "../../src/hints/epoch.ts";
import { createInspector } from "../../src/hints/inspector.ts";
import type { Pass } from "../../src/kernel/loop.ts";
import { createClaimedHints } from "../../src/loops/claimed-hints.ts";
import { createHintSweeper } from "../../src/loops/hint-sweeper.ts";
import { createPublishMarked } from "../../src/loops/publish-marked.ts";
import { createRelay } from "../../src/loops/relay.ts";
import { createWindows } from "../../src/loops/windows.ts";
import { type HintWorld, startHintWorld } from "../hints/world.ts";
import { redisAvailable, startTestRedis } from "../support/redis.ts";
import { dueSchedule } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

const signal = new AbortController().signal;
const ROWS = 6;

let server: Awaited<ReturnType<typeof startTestRedis>>;
let world: World;
let hints: HintWorld;
let relay: Pass;
let sweeper: Pass;
let claimed: Pass;
let available: boolean;

if (redisAvailable) {
  /** Six published rows of one run each, and a sweeper that knows the epoch. */
  beforeEach(async () => {
    server = await startTestRedis();
    world = await createWorld();
    hints = await startHintWorld(server);
    available = true;
    const { authority } = world;
    const redis = { available: () => available, establish: () => establishRedisEpoch(hints.redis) };
    const windows = createWindows(authority, redis);
    relay = createRelay({ authority, redis, windows, publishMarked: createPublishMarked(authority, hints.publisher) });
    const inspector = createInspector({ redis: hints.redis });
    sweeper = createHintSweeper({ authority, inspector, redis });
    claimed = createClaimedHints({ authority, inspector, redis });
    await sweeper.pass(signal);
    const id = await dueSchedule(authority, world.admin, { tenantId: world.tenantId, runs: ROWS, job: "test.noop" });
    await world.materialize([id]);
    expect((await relay.pass(signal)).did).toBe(ROWS);
  });
  afterEach(async () => {
    await hints.stop();
    await server.stop();
    await world.check();
    await world.close();
  });

  const age = (seconds: number) =>
    world.admin.query("update outbox set published_at = published_at - $1 * interval '1 second'", [seconds]);

  async function unpublished(): Promise<bigint[]> {
    return (await world.outbox()).filter((row) => row.published_at === null).map((row) => row.id);
  }

  /** The hash that Redis keeps of the first publication of a row. */
  async function hintKey(rowId: bigint): Promise<string> {
    return (await hints.redis.client.keys(`*e1o${rowId}p1`))[0]!;
  }

  test("a row whose hint Redis lost is published again, under a new number; its neighbours are left alone", async () => {
    const [lost] = await world.outbox();
    await hints.redis.client.del(await hintKey(lost!.id));
    expect((await sweeper.pass(signal)).did).toBe(0); // it might still be on its way
    await age(10);
    expect((await sweeper.pass(signal)).did).toBe(1);
    expect(await unpublished()).toEqual([lost!.id]);
    expect((await relay.pass(signal)).did).toBe(1);
    expect(
      (await world.admin.query("select publish_no, count(*)::int as n from outbox group by 1 order by 1")).rows,
    ).toEqual([
      { publish_no: 1, n: ROWS - 1 },
      { publish_no: 2, n: 1 },
    ]);
    await age(10);
    expect((await sweeper.pass(signal)).did).toBe(0);
  });

  test("a hint that a worker fetched and never claimed is retired and its row published again, but not at once", async () => {
    const worker = await hints.worker();
    const fetched = await worker.fetch("short", 2);
    await age(10);
    expect((await sweeper.pass(signal)).did).toBe(0);
    for (const hint of fetched) {
      await hints.redis.client.hset(await hintKey(hint.rowId), "processedOn", Date.now() - 6_000);
    }
    expect((await sweeper.pass(signal)).did).toBe(fetched.length);
    expect((await unpublished()).toSorted()).toEqual(fetched.map((hint) => hint.rowId).toSorted());
    const inspector = createInspector({ redis: hints.redis });
    expect(await inspector.fetched(world.tenantId, "short", 10)).toEqual([]);
  });

  test("the clock of a worker that died does not keep its hints, however far ahead it was", async () => {
    const worker = await hints.worker();
    const fetched = await worker.fetch("short", 2);
    for (const hint of fetched) {
      await hints.redis.client.hset(await hintKey(hint.rowId), "processedOn", Date.now() + 3_600_000);
    }
    await age(10);
    expect((await sweeper.pass(signal)).did).toBe(0);
    await age(51);
    expect((await sweeper.pass(signal)).did).toBe(fetched.length);
    expect((await unpublished()).toSorted()).toEqual(fetched.map((hint) => hint.rowId).toSorted());
  });

  test("FLUSHALL is seen by the lost epoch: everything is published again at once", async () => {
    await hints.redis.client.flushall();
    expect((await sweeper.pass(signal)).did).toBe(ROWS);
    expect((await relay.pass(signal)).did).toBe(ROWS);
    expect((await sweeper.pass(signal)).did).toBe(0);
  });

  test("an epoch that another sweeper began is a lost one too", async () => {
    await hints.redis.client.flushall();
    await establishRedisEpoch(hints.redis);
    expect((await sweeper.pass(signal)).did).toBe(ROWS);
  });

  test("while Redis does not answer, everything is handed to direct dispatch", async () => {
    available = false;
    expect((await sweeper.pass(signal)).did).toBe(ROWS);
    expect(await unpublished()).toHaveLength(ROWS);
  });

  test("a claim in flight keeps its row, whatever the sweeper thinks", async () => {
    await hints.redis.client.flushall();
    const [first] = await world.outbox();
    const stranger = await world.stranger();
    await stranger.query("select id from outbox where id = $1 for update", [first!.id]);
    expect((await sweeper.pass(signal)).did).toBe(ROWS - 1);
    await stranger.rollback();
    expect((await unpublished()).includes(first!.id)).toBe(false);
  });

  test("hints that were claimed by a worker that died before it said so do not stay in Redis for ever", async () => {
    const worker = await hints.worker();
    const fetched = await worker.fetch("short", 3);
    const [waits, ...gone] = fetched;
    await world.claim(gone.map((hint) => hint.rowId));
    expect((await claimed.pass(signal)).did).toBe(0); // the acknowledgement might be on its way
    for (const hint of fetched) {
      await hints.redis.client.hset(await hintKey(hint.rowId), "processedOn", Date.now() - 61_000);
    }
    expect((await claimed.pass(signal)).did).toBe(gone.length);
    const inspector = createInspector({ redis: hints.redis });
    const left = await inspector.fetched(world.tenantId, "short", 10);
    // That one still has its row: the hint sweeper publishes it again.
    expect(left.map((hint) => hint.hintId)).toEqual([waits!.hintId]);
    expect((await claimed.pass(signal)).did).toBe(0);
  });
}

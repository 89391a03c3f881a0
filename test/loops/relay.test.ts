import { afterEach, beforeEach, expect, test } from "vitest";
import { announceWorker } from "../../src/authority/dispatch/presence.ts";
import type { FetchedHint } from "../../src/hints/queues.ts";
import { mintId, type Uuid } from "../../src/kernel/ids.ts";
import type { Pass } from "../../src/kernel/loop.ts";
import { createPublishMarked } from "../../src/loops/publish-marked.ts";
import { createRelay } from "../../src/loops/relay.ts";
import { createWindows } from "../../src/loops/windows.ts";
import { eventually, type HintWorld, startHintWorld } from "../hints/world.ts";
import { redisAvailable, startTestRedis, testRedis } from "../support/redis.ts";
import { dueSchedule } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

const SLOTS = 50;
/** Twice the slots of the workers. */
const WINDOW = 100;
const signal = new AbortController().signal;

let world: World;
let hints: HintWorld;

if (redisAvailable) {
  beforeEach(async () => {
    world = await createWorld();
    hints = await startHintWorld(testRedis());
    await announceWorker(world.authority, {
      id: mintId(Date.now(), 0),
      name: "worker-a",
      slots: { short: { slots: SLOTS, p95Ms: 1_000 } },
      version: "0",
    });
  });
  afterEach(async () => {
    await hints.stop();
    await world.check();
    await world.close();
  });

  function relayOf(authority = world.authority, publisher = hints.publisher): Pass {
    const redis = { available: () => true };
    const windows = createWindows(authority, redis);
    return createRelay({ authority, redis, windows, publishMarked: createPublishMarked(authority, publisher) });
  }

  /** A tenant with so many queued runs, a row each. */
  async function tenantWith(runs: number, name: string): Promise<Uuid> {
    const tenantId = await world.newTenant(name);
    const id = await dueSchedule(world.authority, world.admin, { tenantId, runs, job: "test.noop" });
    await world.materialize([id]);
    return tenantId;
  }

  async function publishedOf(tenantId: Uuid): Promise<number> {
    return (await world.outbox()).filter((row) => row.tenant_id === tenantId && row.published_at !== null).length;
  }

  async function claimPublished(tenantId: Uuid, most: number) {
    const rows = (await world.outbox()).filter((row) => row.tenant_id === tenantId && row.published_at !== null);
    return (await world.claim(rows.slice(0, most).map((row) => row.id))).grants;
  }

  test("only what can start is published: twice the slots, and more when some of it was claimed", async () => {
    const tenantId = await tenantWith(300, "globex");
    const relay = relayOf();
    expect((await relay.pass(signal)).did).toBe(WINDOW);
    const again = await relay.pass(signal);
    expect(again.did).toBe(0);
    // Work waits for room: it looks again soon.
    expect(again.nextAt! - Date.now()).toBeLessThan(100);
    await claimPublished(tenantId, 40);
    expect((await relay.pass(signal)).did).toBe(40);
    expect(await publishedOf(tenantId)).toBe(WINDOW);
  });

  test("tenants come in turn: a long backlog does not hide a short one", async () => {
    const big = await tenantWith(300, "globex");
    const small = await tenantWith(10, "initech");
    const tiny = await tenantWith(3, "umbrella");
    await relayOf().pass(signal);
    expect(await publishedOf(small)).toBe(10);
    expect(await publishedOf(tiny)).toBe(3);
    expect(await publishedOf(big)).toBe(Math.floor(WINDOW / 3));
  });

  test("a tenant at its limit is parked until a run of its ends", async () => {
    const tenantId = await tenantWith(20, "globex");
    await world.admin.query(
      "insert into usage (tenant_id, class, running, max_running) values ($1, 'short', 0, 5) on conflict (tenant_id, class) do update set max_running = 5",
      [tenantId],
    );
    const relay = relayOf();
    expect((await relay.pass(signal)).did).toBe(5);
    const grants = await claimPublished(tenantId, 5);
    expect(grants).toHaveLength(5);
    expect((await relay.pass(signal)).did).toBe(0);
    await world.complete(grants[0]!);
    await world.complete(grants[1]!);
    expect((await relay.pass(signal)).did).toBe(2);
  });

  test("a parked tenant is looked at less and less often, and often again once something moved or woke the relay", async () => {
    const tenantId = await tenantWith(20, "globex");
    await world.admin.query("insert into usage (tenant_id, class, max_running) values ($1, 'short', 5)", [tenantId]);
    let nowAt = Date.now();
    const relay = relayOf({ ...world.authority, clock: { ...world.authority.clock, now: () => nowAt } });
    const pollMs = async () => (await relay.pass(signal)).nextAt! - nowAt;
    const pollsMs: number[] = [];
    for (let looks = 0; looks < 8; looks++) {
      pollsMs.push(await pollMs());
      nowAt += pollsMs.at(-1)!;
    }
    expect(pollsMs).toEqual([20, 40, 80, 160, 320, 500, 500, 500]);
    nowAt -= 100;
    expect(await pollMs()).toBe(20);
    nowAt += 20;
    expect(await pollMs()).toBe(40);
    nowAt += 40;
    const [grant] = await claimPublished(tenantId, 1);
    await world.complete(grant!);
    expect(await pollMs()).toBe(20);
    expect(await publishedOf(tenantId)).toBe(5);
  });

  test("what is not due yet is not published, and the relay knows when it will be", async () => {
    const tenantId = await tenantWith(1, "globex");
    const availableAt = Date.now() + 5_000;
    await world.admin.query("update outbox set available_at = to_timestamp($1)", [availableAt / 1000]);
    const begunMs = performance.now();
    const { did, nextAt } = await relayOf().pass(signal);
    const tookMs = performance.now() - begunMs;
    expect(did).toBe(0);
    expect(Math.abs(nextAt! - availableAt)).toBeLessThan(5 + tookMs);
    expect(await publishedOf(tenantId)).toBe(0);
  });

  test("several relays at once publish every row once", async () => {
    const tenants = await Promise.all(["globex", "initech", "umbrella"].map((name) => tenantWith(30, name)));
    const relays = [relayOf(), relayOf(world.another()), relayOf(world.another())];
    const published = await Promise.all(relays.map((relay) => relay.pass(signal)));
    expect(published.reduce((sum, one) => sum + one.did, 0)).toBe(90);
    const { rows } = await world.admin.query("select distinct publish_no from outbox");
    expect(rows).toEqual([{ publish_no: 1 }]);
    const worker = await hints.worker();
    // A worker that has just come, or that waits for Redis, fetches nothing yet.
    const fetched: FetchedHint[] = [];
    await eventually(async () => {
      fetched.push(...(await worker.fetch("short", 1_000)));
      return fetched.length >= 90;
    });
    expect(new Set(fetched.map((hint) => hint.rowId)).size).toBe(90);
    expect(fetched).toHaveLength(90);
    expect(tenants).toHaveLength(3);
    await worker.acknowledge(fetched);
  });

  test("what Redis did not take is unmarked in the same pass, and no lock is held while it is waited for", async () => {
    const server = await startTestRedis();
    const own = await startHintWorld(server, { commandTimeoutMs: 1_000 });
    const tenantId = await tenantWith(10, "globex");
    process.kill(server.pid, "SIGSTOP");
    try {
      const pass = relayOf(world.authority, own.publisher).pass(signal);
      // Marked and committed; anybody may claim meanwhile.
      while ((await publishedOf(tenantId)) === 0);
      expect(await claimPublished(tenantId, 2)).toHaveLength(2);
      expect((await pass).did).toBe(0);
      expect(await publishedOf(tenantId)).toBe(0);
    } finally {
      process.kill(server.pid, "SIGCONT");
      await own.stop();
      await server.stop();
    }
  });
}

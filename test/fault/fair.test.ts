import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { z } from "zod";
import type { Definition } from "../../src/domain/definition.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { redisAvailable, testRedis } from "../support/redis.ts";
import { type Node, startNode, until } from "../support/system.ts";
import { createWorld } from "../support/world.ts";

/** Case B54, on real servers and a real worker. Runs end when they are told to, so nothing here depends on how fast it goes. */
const CASES = JSON.parse(readFileSync(new URL("../vectors/cases.json", import.meta.url), "utf8")) as {
  id: string;
  input: string;
}[];
const b54 = CASES.find(({ id }) => id === "B54")!;

const SLOTS = 4;
const BACKLOG = 1_000;
/** Slot time is counted in turns: a run is ended when four others have started since, after 100 ms. */
const TURN_MS = 25;

async function openScene(by: "redis" | "outbox", onTestFinished: (close: () => Promise<void>) => void) {
  const world = await createWorld();
  const nodes: Node[] = [];
  const held: { tenantId: Uuid; end(): void }[] = [];
  const starts: Uuid[] = [];
  let open = false;
  onTestFinished(async () => {
    open = true;
    for (const run of held) run.end();
    for (const node of nodes) await node.stop();
    await world.check();
    await world.close();
  });
  const job = defineJob({
    name: "test.told",
    version: 1,
    input: z.object({ tenantId: z.string() }),
    run: (_, { tenantId }) => {
      starts.push(tenantId as Uuid);
      if (open) return;
      return new Promise<void>((resolve) => {
        held.push({ tenantId: tenantId as Uuid, end: resolve });
      });
    },
  });
  const redis = by === "redis" ? testRedis() : undefined;
  const config = { PUNCTUAL_SLOTS_SHORT: String(SLOTS) };
  return {
    world,
    starts,
    held,
    async start() {
      const node = (roles: Parameters<typeof startNode>[0]["roles"]) =>
        startNode({ roles, url: world.url, redis, config, jobs: [job], slotClock: () => starts.length * TURN_MS });
      nodes.push(await node(["relay", "sweeper"]), await node(["worker"]));
    },
    /** So many due runs of a tenant, spread over so many schedules and ways to overlap. */
    async add(tenantId: Uuid, runs: number, schedules = 1) {
      const policies: Partial<Definition>[] = [
        { overlap: { policy: "allow" } },
        { overlap: { policy: "allow", limit: 20 } },
      ];
      const ids: Uuid[] = [];
      for (let n = 0; n < schedules; n++) {
        const each = runs / schedules;
        ids.push(
          await world.newSchedule({
            tenantId,
            rule: { kind: "interval", everyMs: 1_000, anchorAt: 0 },
            job: { kind: "function", name: "test.told", version: 1 },
            misfire: { policy: "all", graceMs: 86_400_000, maxCatchUp: each } as Definition["misfire"],
            maxRuns: each,
            payload: { tenantId },
            ...policies[schedules === 1 ? 0 : n % 2],
          }),
        );
        await world.makeDue(ids[n]!, each * 1_000);
      }
      for (let round = 0; round < 200; round++) {
        const { rows } = await world.admin.query(
          `select schedule_id from schedule_cursor
            where schedule_id = any($1::uuid[]) and next_due_at <= clock_timestamp()`,
          [ids],
        );
        if (rows.length === 0) return;
        await world.materialize(rows.map((row) => row.schedule_id));
      }
      throw new Error("the runs were not made");
    },
    /** Ends the run that has been running longest, and waits until the slot is filled again. */
    async turn() {
      const before = starts.length;
      held.shift()!.end();
      await until("the slot is filled again", () => starts.length > before);
    },
    full: () => until("all slots are filled", () => held.length === SLOTS),
  };
}

test("the case is as it was found", () => {
  expect(b54.input).toMatch(/^4 slots, 100 ms jobs\. A has 1000 ready/);
});

const ways = redisAvailable ? (["redis", "outbox"] as const) : (["outbox"] as const);
for (const by of ways) {
  for (const [shape, schedules] of [
    ["one schedule", 1],
    ["50 schedules and 50 keys", 50],
  ] as const) {
    test.concurrent(`B54 by ${by}, A's backlog in ${shape}: B starts within one round, and without B A has every slot`, async ({
      onTestFinished,
    }) => {
      const { world, starts, held, start, add, turn, full } = await openScene(by, onTestFinished);
      const a = world.tenantId;
      const b = await world.newTenant("b");
      await add(a, BACKLOG, schedules);
      await start();
      await full();
      for (let n = 0; n < 20; n++) await turn();
      expect(held.map((run) => run.tenantId)).toEqual([a, a, a, a]);
      await add(b, 1);
      const since = starts.length;
      // Redis: until B's hint stands there, turns would tell nothing of who is next.
      if (by === "redis") {
        await until("B is published", async () => {
          const { rows } = await world.admin.query(
            "select 1 from outbox where tenant_id = $1 and published_at is not null",
            [b],
          );
          return rows.length > 0 || starts.includes(b);
        });
      }
      for (let n = 0; n < SLOTS && !starts.includes(b); n++) await turn();
      expect(starts.slice(since)).toContain(b);
      expect(starts.slice(since).indexOf(b)).toBeLessThanOrEqual(SLOTS);
      // B idles again.
      while (held.some((run) => run.tenantId === b)) await turn();
      for (let n = 0; n < SLOTS; n++) await turn();
      expect(held.map((run) => run.tenantId)).toEqual([a, a, a, a]);
    });
  }

  test.concurrent(`B54 by ${by}, 20 tenants of 50 runs each: equal shares of the starts, all the time`, async ({
    onTestFinished,
  }) => {
    const { world, starts, start, add, turn, full } = await openScene(by, onTestFinished);
    const tenants: Uuid[] = [];
    for (let n = 0; n < 20; n++) tenants.push(await world.newTenant(`t${n}`));
    for (const tenantId of tenants) await add(tenantId, 50);
    await start();
    await full();
    // Ten seconds of four slots and 100 ms are 400 starts.
    const IN_TEN_SECONDS = 400;
    while (starts.length < 2 * IN_TEN_SECONDS) {
      await turn();
      await sleep(0);
    }
    for (let from = 0; from + IN_TEN_SECONDS <= starts.length; from += 20) {
      const some = starts.slice(from, from + IN_TEN_SECONDS);
      const counts = tenants.map((tenantId) => some.filter((one) => one === tenantId).length);
      expect(Math.min(...counts)).toBeGreaterThanOrEqual(18);
      expect(Math.max(...counts)).toBeLessThanOrEqual(22);
    }
  }, 180_000);
}

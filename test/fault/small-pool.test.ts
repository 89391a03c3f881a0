import { expect, test } from "vitest";
import { z } from "zod";
import { mintKey } from "../../src/api/keys.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { createApiKey } from "../../src/authority/tenants/create-api-key.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { call } from "../api/server.ts";
import { bear, start } from "../authority/scenes.ts";
import { freePort } from "../support/free-port.ts";
import { countRuns, dueSchedule, startNode, until } from "../support/system.ts";
import { createWorld } from "../support/world.ts";

/** Holds its slot until it is told to end. */
function holdingJob() {
  const gate = Promise.withResolvers<void>();
  let running = 0;
  const job = defineJob({
    name: "test.hold",
    version: 1,
    input: z.looseObject({}),
    async run() {
      running++;
      await gate.promise;
    },
  });
  return { job, running: () => running, release: () => gate.resolve() };
}

test("B42 two connections for everything: 50 creates, 20 completions and 10 running attempts at once all end, and no lease runs out", async ({
  onTestFinished,
}) => {
  const world = await createWorld();
  const held = holdingJob();
  const port = await freePort();
  // Everything in one process, and all of it on two connections; heartbeats have theirs.
  const node = await startNode({
    url: world.url,
    roles: ["api", "scheduler", "relay", "sweeper", "worker"],
    jobs: [held.job],
    config: {
      PUNCTUAL_PORT: String(port),
      PUNCTUAL_SECRET: "a secret for tests",
      PUNCTUAL_DB_CONNECTIONS: "2",
      PUNCTUAL_SLOTS_SHORT: "10",
    },
  });
  onTestFinished(async () => {
    held.release();
    await node.stop();
    await world.check();
    await world.close();
  });
  const minted = mintKey();
  await createApiKey(world.authority, { tenantId: world.tenantId, role: "owner", label: "t", ...minted });
  await dueSchedule(node.core.authority, world.admin, { tenantId: world.tenantId, runs: 10, job: "test.hold" });
  await until("ten attempts run", () => held.running() === 10);

  // Another worker's runs: their completions come in one by one, over the same two connections.
  const other = await world.newTenant("globex");
  const grants: Awaited<ReturnType<typeof start>>[] = [];
  for (let i = 0; i < 20; i++) {
    const scheduleId = await world.newSchedule({
      tenantId: other,
      job: { kind: "function", name: "test.none", version: 1 },
    });
    const runId = await bear(world, scheduleId, 1_000);
    // The relay may be at its row; whoever is not let near it tries again.
    await until("it has started", async () => {
      const grant = await start(world, runId).catch(() => undefined);
      if (grant !== undefined) grants.push(grant);
      return grant !== undefined;
    });
  }
  const beats = async () =>
    (await world.admin.query("select min(last_heartbeat_at) as at from live_run where worker not like 'worker-a'"))
      .rows[0].at as Date;
  const before = await beats();
  const creates = Array.from({ length: 50 }, (_, i) =>
    call(`http://127.0.0.1:${port}`, "POST", "/v1/schedules", {
      key: minted.key,
      headers: { "idempotency-key": `k-${i}` },
      body: {
        name: `flood ${i}`,
        rule: { kind: "cron", expression: "0 0 1 1 *", zone: "Etc/UTC" },
        job: { kind: "function", name: "report.run-summary", version: 1 },
        payload: { period: "last-day" },
      },
    }),
  );
  const completions = grants.map(({ runId, fence }) =>
    completeRuns(node.core.authority, [{ runId, fence, output: null }]),
  );
  const answers = await Promise.all(creates);
  for (const { status, headers } of answers) {
    expect([201, 503]).toContain(status);
    if (status === 503) expect(Number(headers.get("retry-after"))).toBeGreaterThan(0);
  }
  expect(answers.filter((answer) => answer.status === 201).length).toBeGreaterThan(0);
  const ends = (await Promise.all(completions)).flat().map((one) => one.kind);
  expect(ends).toEqual(Array.from({ length: 20 }, () => "accepted"));

  // Heartbeats went on, so nobody else got these runs.
  await until("every attempt was heard of since", async () => (await beats()) > before);
  held.release();
  await until("the ten succeed", async () => (await countRuns(world.admin)).succeeded === 30);
  const { rows } = await world.admin.query("select max(n) as attempts, count(ended_at)::int as ended from attempt");
  expect(rows).toEqual([{ attempts: 1, ended: 0 }]);
}, 240_000);

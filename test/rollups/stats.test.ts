import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { statsSchema } from "../../src/api/present/stats.ts";
import { claimRuns } from "../../src/authority/attempts/claim.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { foldRollups } from "../../src/authority/rollups/fold-rollups.ts";
import { createClient } from "../../src/client/client.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "../api/server.ts";

let server: TestServer;
let owner: string;
beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server?.close());

const get = (path: string, key = owner) => call(server.url, "GET", path, { key });

async function succeed(runs: number): Promise<void> {
  for (let n = 0; n < runs; n++) await call(server.url, "POST", "/v1/runs", { key: owner, body: { job: REPORT } });
  const rows = await server.db.query<{ id: bigint; epoch: number }>(
    sql("test_hints", "select o.id, e.epoch from outbox o, authority_epoch e"),
  );
  const { grants } = await claimRuns(server.authority, {
    claimId: mintId(1_800_000_000_000, 0),
    worker: "worker-a",
    slots: { short: 10 },
    hints: rows.map((row) => ({ rowId: row.id, epoch: row.epoch })),
    repeated: false,
  });
  await completeRuns(
    server.authority,
    grants.map(({ runId, fence }) => ({ runId, fence, output: null })),
  );
}

describe("statistics", () => {
  it("count what happened, say how late it started, and as of when all of it is counted", async () => {
    await succeed(3);
    const before = await get("/v1/stats");
    expect(before.status, before.text).toBe(200);
    expect(before.body).toMatchObject({ items: [], total: { started: 0, lateness: { p50Ms: null } } });
    await foldRollups(server.authority, 100);
    for (const resolution of ["minute", "hour", "day"]) {
      const { body } = await get(`/v1/stats?resolution=${resolution}`);
      const stats = statsSchema.parse(body);
      expect(stats.total).toMatchObject({ started: 3, succeeded: 3, failed: 0, heldBack: 0 });
      expect(stats.total.lateness.counts.reduce((sum, n) => sum + n, 0)).toBe(3);
      expect(stats.latenessBoundsMs).toContain(stats.total.lateness.p99Ms);
      expect(stats.items.map((one) => one.class)).toEqual(stats.items.map(() => "short"));
      expect(Date.parse(stats.asOf)).toBeLessThan(Date.now());
    }
    const client = createClient({ url: server.url, key: owner, sleep: async () => {} });
    expect((await client.stats({ class: "short", resolution: "hour" })).total.succeeded).toBe(3);
    expect((await client.stats({ class: "long" })).total.started).toBe(0);
  });

  it("are a tenant's own", async () => {
    const other = await server.key(await server.tenant("others"), "viewer");
    expect((await get("/v1/stats?resolution=day", other)).body).toMatchObject({ items: [], total: { started: 0 } });
    const worker = await server.key(await server.tenant("workers"), "worker");
    expect((await get("/v1/stats", worker)).status).toBe(403);
  });

  it("cover whole buckets, and no more of them than an answer can hold", async () => {
    const { body } = await get("/v1/stats?from=2026-10-01T09:00:30Z&to=2026-10-01T09:01:01Z");
    expect(body).toMatchObject({ from: "2026-10-01T09:00:00Z", to: "2026-10-01T09:02:00Z", resolution: "minute" });
    const long = await get("/v1/stats?from=2026-10-01T00:00:00Z&to=2026-10-10T00:00:00Z");
    expect([long.status, long.body.code]).toEqual([400, "invalid-request"]);
    expect(long.body.detail).toMatch(/^from: found "?12960 buckets/);
    const backwards = await get("/v1/stats?from=2026-10-02T00:00:00Z&to=2026-10-01T00:00:00Z");
    expect(backwards.body.detail).toMatch(/^to: .*is not after from/);
  });
});

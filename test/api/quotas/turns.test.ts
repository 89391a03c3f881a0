import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { expect, it, onTestFinished } from "vitest";
import type { ApiParts } from "../../../src/api/app.ts";
import { createLimits } from "../../../src/api/limits/limit-calls.ts";
import { type CallLimits, createCallLimits } from "../../../src/hints/call-limits.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { createLog, silentLog } from "../../../src/kernel/log.ts";
import { sql } from "../../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "../server.ts";

/** Of four connections, so that two are one tenant's at most. */
async function start(changes: Partial<ApiParts> = {}): Promise<TestServer> {
  const server = await startTestServer(changes, 0, 4);
  onTestFinished(() => server.close());
  return server;
}

async function newTenant(server: TestServer, name: string) {
  const tenantId = await server.tenant(name);
  const [key, worker] = [await server.key(tenantId, "operator"), await server.key(tenantId, "worker")];
  const attempts = [{ runId: "run_00000000000000000000000000", attempt: 1, fence: "1" }];
  return {
    tenantId,
    create: (signal: AbortSignal | null = null) =>
      fetch(`${server.url}/v1/runs`, {
        method: "POST",
        signal,
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ job: { kind: "remote", name: "test.echo" } }),
      }),
    list: () => call(server.url, "GET", "/v1/schedules", { key }),
    beat: () => call(server.url, "POST", "/v1/worker/heartbeat", { key: worker, body: { worker: "w", attempts } }),
    poll: (waitMs: number) =>
      call(server.url, "POST", "/v1/worker/poll", { key: worker, body: { worker: "w", jobs: ["a@1"], waitMs } }),
  };
}

/** From now on no run can be made, until it is let go; everything else goes on. */
async function holdRunsUp(server: TestServer) {
  const holder = new pg.Client({ connectionString: server.databaseUrl });
  await holder.connect();
  onTestFinished(() => holder.end());
  const {
    rows: [own],
  } = await holder.query("select oid from pg_database where datname = current_database()");
  await holder.query("begin; lock table outbox in access exclusive mode");
  const held = async () => {
    const { rows } = await holder.query(
      "select count(*)::int as held from pg_locks where relation = 'outbox'::regclass and database = $1 and not granted",
      [own.oid],
    );
    return Number(rows[0].held);
  };
  return {
    held,
    async untilHeld(connections: number) {
      while ((await held()) < connections) await pause(10);
    },
    letGo: () => holder.query("rollback"),
  };
}

/** Counts the calls of each tenant that were let in, and wait for a turn or have one. */
function countArrivals() {
  const { take } = createCallLimits({ redis: undefined, clock: systemClock });
  const arrived = new Map<string, number>();
  const callLimits: CallLimits = {
    take(key, limit) {
      arrived.set(key, (arrived.get(key) ?? 0) + 1);
      return take(key, limit);
    },
  };
  return {
    callLimits,
    async until(tenantId: string, calls: number) {
      while ((arrived.get(`tenant:${tenantId}:rate`) ?? 0) < calls) await pause(10);
    },
  };
}

/** So many calls of the tenant that do not end before they are told to; two have turns, and the others wait. */
function takeTurns(server: TestServer, of: string, many: number) {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  const gone = new AbortController().signal;
  const calls = Array.from({ length: many }, () => {
    const turn = server.db.turns.take({ of, comesFirst: false, gone, refuse: () => new Error("no room") });
    return turn(() => ended);
  });
  return {
    async giveBack() {
      end();
      await Promise.all(calls);
    },
  };
}

it("a tenant's burst is answered in full, and another tenant's single call before most of it", async () => {
  const arrivals = countArrivals();
  const server = await start({ callLimits: arrivals.callLimits });
  const [noisy, quiet] = [await newTenant(server, "noisy"), await newTenant(server, "quiet")];
  const runs = await holdRunsUp(server);
  let answered = 0;
  const burst = Array.from({ length: 150 }, async () => {
    const { status } = await noisy.create();
    answered++;
    return status;
  });
  await arrivals.until(noisy.tenantId, 150);
  const single = quiet.create();
  await runs.untilHeld(3);
  await runs.letGo();
  expect((await single).status).toBe(201);
  expect(answered).toBeLessThan(75);
  expect(new Set(await Promise.all(burst))).toEqual(new Set([201]));
});

it("calls of a tenant that stand still hold half of the connections; others go on, and what keeps its runs going is next", async () => {
  const server = await start();
  const [noisy, quiet] = [await newTenant(server, "noisy"), await newTenant(server, "quiet")];
  const runs = await holdRunsUp(server);
  let answered = 0;
  const burst = Array.from({ length: 20 }, async () => {
    await noisy.create();
    answered++;
  });
  await runs.untilHeld(2);
  expect((await quiet.list()).status).toBe(200);
  expect(answered).toBeLessThan(10);
  expect(await runs.held()).toBeLessThanOrEqual(2);
  const beat = noisy.beat();
  expect((await quiet.list()).status).toBe(200);
  await runs.letGo();
  expect((await beat).status).toBe(200);
  expect(answered).toBeLessThan(10);
  await Promise.all(burst);
});

it("whoever hangs up leaves the line, and what was asked for is not done", async () => {
  let gone = 0;
  const write = (line: string) => {
    if (line.includes("a caller has gone before its answer")) gone++;
  };
  const log = createLog({ level: "debug", role: "api", destination: { write } });
  const arrivals = countArrivals();
  const server = await start({ log, callLimits: arrivals.callLimits });
  const [impatient, other] = [await newTenant(server, "impatient"), await newTenant(server, "other")];
  const turns = takeTurns(server, impatient.tenantId, 2);
  const hangUp = new AbortController();
  const left = Promise.allSettled(Array.from({ length: 10 }, () => impatient.create(hangUp.signal)));
  await arrivals.until(impatient.tenantId, 10);
  // Behind them, so that they are in the line.
  expect((await other.list()).status).toBe(200);
  hangUp.abort();
  await left;
  while (gone < 10) await pause(10);
  await turns.giveBack();
  expect((await impatient.list()).status).toBe(200);
  const COUNT = sql("test_count_runs", "select count(*)::int as runs from run where tenant_id = $1");
  expect(await server.db.query(COUNT, [impatient.tenantId])).toEqual([{ runs: 0 }]);
});

it("a worker that waits for work holds no turn", async () => {
  const server = await start();
  const { poll, list } = await newTenant(server, "waiting");
  let answered = 0;
  const polls = Array.from({ length: 8 }, async () => {
    await poll(30_000);
    answered++;
  });
  for (let k = 0; k < 8; k++) expect((await list()).status).toBe(200);
  expect(answered).toBe(0);
  await server.close();
  await Promise.all(polls);
});

it("a call for which there is no room in its tenant's line is told to come again; another tenant's is answered", async () => {
  const server = await start();
  const [noisy, quiet] = [await newTenant(server, "noisy"), await newTenant(server, "quiet")];
  const turns = takeTurns(server, noisy.tenantId, 1_002);
  const { status, headers, body } = await noisy.list();
  expect([status, headers.get("retry-after")]).toEqual([429, "5"]);
  expect(body).toMatchObject({ code: "quota-exceeded", quota: "waitingCalls", limit: 1_000, retryable: true });
  expect((await quiet.list()).status).toBe(200);
  await turns.giveBack();
  expect((await noisy.list()).status).toBe(200);
});

it("a burst of a tenant's calls reads its rate once", async () => {
  const server = await start();
  const { tenantId } = await newTenant(server, "bursting");
  let reads = 0;
  const db = Object.assign(Object.create(server.db), {
    query: (...asked: Parameters<typeof server.db.query>) => {
      reads++;
      return server.db.query(...asked);
    },
  });
  const { rates } = createLimits(createCallLimits({ redis: undefined, clock: systemClock }), systemClock);
  await Promise.all(Array.from({ length: 100 }, () => rates.of({ db, log: silentLog }, tenantId)));
  expect(reads).toBe(1);
});

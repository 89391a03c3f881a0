import { createConnection } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type CallLimits, createCallLimits } from "../../../src/hints/call-limits.ts";
import { connectHintRedis } from "../../../src/hints/connection.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { silentLog } from "../../../src/kernel/log.ts";
import { redisAvailable, startTestRedis } from "../../support/redis.ts";
import { type Answer, call, REPORT, startTestServer, type TestServer } from "../server.ts";

let server: TestServer;
/** Under which keys calls were counted. */
const counted: string[] = [];
beforeAll(async () => {
  const { take } = createCallLimits({ redis: undefined, clock: systemClock });
  const callLimits: CallLimits = {
    take(key, limit) {
      counted.push(key);
      return take(key, limit);
    },
  };
  server = await startTestServer({ callLimits });
});
afterAll(() => server?.close());

async function newTenant(at: TestServer, name: string, rate: object) {
  const tenantId = await at.tenant(name);
  const admin = await at.key(tenantId, "admin");
  const set = await call(at.url, "PUT", "/v1/quotas", { key: admin, body: rate });
  expect(set.status, set.text).toBe(200);
  const keyOf = (role: "viewer" | "worker") => at.key(tenantId, role);
  return { tenantId, admin, keyOf, me: () => call(at.url, "GET", "/v1/me", { key: admin }) };
}
const statusesOf = (answers: readonly Answer[]) => answers.map((one) => one.status);
async function times(n: number, one: () => Promise<Answer>): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let k = 0; k < n; k++) answers.push(await one());
  return answers;
}

describe("calls a second", () => {
  it("of workers that ask for too much take nothing from what keeps their runs going", async () => {
    const { keyOf } = await newTenant(server, "asking", { apiRatePerSecond: 1, apiBurst: 0 });
    const key = await keyOf("worker");
    const ask = (verb: string, body: object) => call(server.url, "POST", `/v1/worker/${verb}`, { key, body });
    const polls = await Promise.all(
      Array.from({ length: 40 }, () => ask("poll", { worker: "w", jobs: ["a@1"], waitMs: 0 })),
    );
    expect(statusesOf(polls)).toContain(429);
    const attempts = [{ runId: "run_00000000000000000000000000", attempt: 1, fence: "1" }];
    expect((await ask("heartbeat", { worker: "w", attempts })).status).toBe(200);
  });

  it("within the rate are answered, with what is left", async () => {
    const { me } = await newTenant(server, "within", { apiRatePerSecond: 50, apiBurst: 7 });
    const { headers } = await me();
    expect(headers.get("ratelimit-policy")).toBe('"rate";q=50;w=1, "burst";q=7;w=60');
    expect(headers.get("ratelimit")).toMatch(/^"rate";r=\d+;t=[01]$/);
  });

  it("beyond it use up the burst, and then are refused until the next second", async () => {
    const { me } = await newTenant(server, "beyond", { apiRatePerSecond: 1, apiBurst: 2 });
    // Asked at once, so that all of them fall into two seconds at most: 2 by the rate, 2 by the burst.
    const answers = await Promise.all(Array.from({ length: 12 }, me));
    const refused = answers.filter((one) => one.status === 429);
    expect(refused.length).toBeGreaterThanOrEqual(8);
    expect(refused.length).toBeLessThanOrEqual(9);
    expect(answers.some((one) => /^"burst";r=\d;t=\d+$/.test(one.headers.get("ratelimit") ?? ""))).toBe(true);
    const one = refused[0]!;
    expect(one.body).toMatchObject({ code: "quota-exceeded", quota: "apiRatePerSecond", limit: 1, retryable: true });
    expect(one.headers.get("retry-after")).toBe("1");
    expect(one.headers.get("ratelimit")).toMatch(/^"rate";r=0;t=[01]$/);
    expect(one.headers.get("ratelimit-policy")).toBe('"rate";q=1;w=1, "burst";q=2;w=60');
    // Who waits as long as is said is answered: that is what is measured here, not a race.
    await pause(1_000);
    expect((await me()).status).toBe(200);
  });

  it("are counted for the tenant, whichever of its keys asks; another tenant has its own", async () => {
    const { me, keyOf } = await newTenant(server, "one of two", { apiRatePerSecond: 1, apiBurst: 0 });
    const viewer = await keyOf("viewer");
    const other = await newTenant(server, "two of two", { apiRatePerSecond: 100 });
    const mixed = await Promise.all(
      Array.from({ length: 10 }, (_, k) => (k % 2 ? me() : call(server.url, "GET", "/v1/me", { key: viewer }))),
    );
    expect(statusesOf(mixed).filter((status) => status === 429).length).toBeGreaterThanOrEqual(8);
    expect((await other.me()).status).toBe(200);
  });

  it("of workers are counted apart and ten times as generously", async () => {
    const { tenantId, me, keyOf } = await newTenant(server, "workers", { apiRatePerSecond: 1, apiBurst: 0 });
    const worker = await keyOf("worker");
    await Promise.all(Array.from({ length: 5 }, me));
    const { status, headers } = await call(server.url, "GET", "/v1/me", { key: worker });
    expect([status, headers.get("ratelimit-policy")]).toEqual([200, '"rate";q=10;w=1']);
    expect(counted.at(-1)).toBe(`workers:${tenantId}:rate`);
    await me();
    expect(counted.at(-1)).toBe(`tenant:${tenantId}:rate`);
  });

  it("do not count where there is no limit; probes and pages are never limited", async () => {
    const free = await newTenant(server, "free", { apiRatePerSecond: null });
    const answers = await times(5, free.me);
    expect(statusesOf(answers)).toEqual([200, 200, 200, 200, 200]);
    expect(answers[0]!.headers.get("ratelimit")).toBeNull();
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      const probes = await Promise.all(Array.from({ length: 10 }, () => call(server.url, "GET", path)));
      expect(new Set(statusesOf(probes)), path).toEqual(new Set([200]));
      expect(probes[0]!.headers.get("ratelimit"), path).toBeNull();
    }
  });

  it("a new rate holds for the next call", async () => {
    const { me, admin } = await newTenant(server, "renewed", { apiRatePerSecond: 100 });
    expect((await me()).headers.get("ratelimit-policy")).toMatch(/q=100;/);
    await call(server.url, "PUT", "/v1/quotas", { key: admin, body: { apiRatePerSecond: 90, expectedVersion: 1 } });
    expect((await me()).headers.get("ratelimit-policy")).toMatch(/q=90;/);
  });

  it("a call too many is refused before its body is read", async () => {
    const { admin, me } = await newTenant(server, "unread", { apiRatePerSecond: 1, apiBurst: 0 });
    const { hostname, port } = new URL(server.url);
    const socket = createConnection(Number(port), hostname);
    const answered = new Promise<string>((resolve, reject) => {
      socket.on("data", (bytes) => resolve(String(bytes)));
      socket.on("error", reject);
    });
    for (;;) {
      // The second in which the tenant has used its one call up.
      if ((await me()).status === 429) break;
    }
    // A body is announced, and never sent.
    socket.write(
      `POST /v1/runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${admin}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n`,
    );
    const answer = await Promise.race([answered, pause(5_000, "nothing")]);
    socket.destroy();
    // In the next second it would wait for its body: then there would be no answer at all.
    expect(answer).toMatch(/^HTTP\/1\.1 429 /);
  });
});

if (redisAvailable) {
  describe("while Redis is stopped", () => {
    const ends: (() => Promise<unknown> | unknown)[] = [];
    afterEach(async () => {
      for (const end of ends.splice(0).reverse()) await end();
    });

    it("calls are answered as fast as ever, and limited still", async () => {
      const redis = await startTestRedis();
      ends.push(() => redis.stop());
      const connection = connectHintRedis({
        url: redis.url,
        prefix: "limits",
        clock: systemClock,
        log: silentLog,
        pingEveryMs: 60_000,
        // Longer than this test may take: whoever waits for the command fails it.
        commandTimeoutMs: 600_000,
      });
      await connection.start();
      ends.push(() => connection.stop());
      const limited = await startTestServer({
        callLimits: createCallLimits({ redis: connection, clock: systemClock }),
      });
      ends.push(() => limited.close());
      const { me } = await newTenant(limited, "acme", { apiRatePerSecond: 1, apiBurst: 3 });
      await me();
      process.kill(redis.pid, "SIGSTOP");
      ends.push(() => process.kill(redis.pid, "SIGCONT"));
      const answers = await Promise.all(Array.from({ length: 20 }, me));
      const refused = statusesOf(answers).filter((status) => status === 429).length;
      expect(refused).toBeGreaterThanOrEqual(14);
      expect(refused).toBeLessThan(20);
    });
  });
}

describe("calls without a valid credential", () => {
  const guess = (key: string) => call(server.url, "GET", "/v1/me", { key });

  it("are refused as too many after sixty in a minute, but keys that were good here are answered", async () => {
    const lone = await startTestServer({ callLimits: createCallLimits({ redis: undefined, clock: systemClock }) });
    const tenantId = await lone.tenant("neighbours");
    const [known, fresh] = [await lone.key(tenantId, "viewer"), await lone.key(tenantId, "viewer")];
    const me = (key?: string) => call(lone.url, "GET", "/v1/me", { key });
    expect((await me(known)).status).toBe(200);
    const tries = await Promise.all(
      Array.from({ length: 61 }, (_, k) => me(`pk_00000000000${k % 10}_${"0".repeat(43)}`)),
    );
    expect(new Set(statusesOf(tries))).toEqual(new Set([401]));
    const blocked = await me("pk_guess");
    expect([blocked.status, blocked.body.code]).toEqual([429, "too-many-failures"]);
    const seconds = Number(blocked.headers.get("retry-after"));
    expect(seconds).toBeGreaterThan(50);
    expect(seconds).toBeLessThanOrEqual(60);
    expect((await me(known)).status).toBe(200);
    // One that nobody has seen here waits, like a guess: a guesser cannot tell that it is good.
    expect((await me(fresh)).status).toBe(429);
    // Who sends no credential guesses none.
    expect((await me()).status).toBe(401);
    await lone.close();
  });

  it("count where a session is to begin with them, too", async () => {
    const lone = await startTestServer({ callLimits: createCallLimits({ redis: undefined, clock: systemClock }) });
    const begin = (k: number) => call(lone.url, "POST", "/v1/session", { body: { key: `pk_guess${k}` } });
    const tries = await Promise.all(Array.from({ length: 61 }, (_, k) => begin(k)));
    expect(new Set(statusesOf(tries))).toEqual(new Set([401]));
    expect((await begin(62)).body.code).toBe("too-many-failures");
    await lone.close();
  });

  it("do not count where the credential is good, and a few bad ones block nobody", async () => {
    const { me } = await newTenant(server, "clumsy", {});
    await Promise.all(Array.from({ length: 5 }, () => guess("pk_nonsense")));
    expect(statusesOf(await Promise.all(Array.from({ length: 70 }, me))).filter((one) => one === 200)).toHaveLength(70);
    // The first of these is what would block the second, if all those calls had been counted.
    expect(statusesOf(await times(2, () => guess("pk_nonsense")))).toEqual([401, 401]);
  });
});

it("a run that is refused for the rate has not used its key up", async () => {
  const { admin } = await newTenant(server, "keys", { apiRatePerSecond: 1, apiBurst: 0 });
  const make = () =>
    call(server.url, "POST", "/v1/runs", {
      key: admin,
      body: { job: REPORT, payload: {} },
      headers: { "idempotency-key": "k" },
    });
  const answers = await times(3, make);
  await pause(1_000);
  const last = await make();
  expect(last.status).toBe(201);
  const made = [...answers, last].filter((one) => one.status === 201);
  expect(new Set(made.map((one) => one.body.runId)).size).toBe(1);
});

import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { attemptSchema, runListItemSchema, runSchema } from "../../src/api/present/run.ts";
import { createLinkSigner } from "../../src/api/signed-link.ts";
import { completeRuns } from "../../src/authority/attempts/complete.ts";
import { grantUpload } from "../../src/authority/objects/grant-upload.ts";
import { stageObject } from "../../src/authority/objects/stage-object.ts";
import { mintId, readId, showId } from "../../src/kernel/ids.ts";
import { sql } from "../../src/store/database.ts";
import { claimRun } from "./runs/claims.ts";
import { call, REPORT, SECRET, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
let stranger: string;
const send = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }), headers });

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
  stranger = await server.key(await server.tenant("strangers"), "owner");
});
afterAll(() => server?.close());

const makeRun = async (payload: object = {}) =>
  String((await send("POST", "/v1/runs", { job: REPORT, payload })).body.runId);
const makeSchedule = async (more: object = {}, key = owner) =>
  String(
    (
      await send(
        "POST",
        "/v1/schedules",
        { name: "hourly", rule: { kind: "cron", expression: "0 * * * *", zone: "UTC" }, job: REPORT, ...more },
        {},
        key,
      )
    ).body.scheduleId,
  );

const claim = (run: string) => claimRun(server, run);

async function finish(run: string, report: string | null): Promise<void> {
  const { runId, fence } = await claim(run);
  if (report === null) {
    expect(await completeRuns(server.authority, [{ runId, fence, output: null }])).toMatchObject([
      { kind: "accepted" },
    ]);
    return;
  }
  const uri = `memory:${run}`;
  server.objects.set(uri, report);
  const sha256 = createHash("sha256").update(report).digest("hex");
  const grant = await grantUpload(server.authority, {
    runId,
    fence,
    name: "report.html",
    uri,
    mediaType: "text/html; charset=utf-8",
  });
  if (grant.kind !== "granted") throw new Error(grant.kind);
  await stageObject(server.authority, {
    runId,
    fence,
    objectId: grant.objectId,
    uri,
    version: sha256,
    sha256,
    size: Buffer.byteLength(report),
  });
  expect(
    await completeRuns(server.authority, [{ runId, fence, output: { objectId: grant.objectId, sha256 } }]),
  ).toMatchObject([{ kind: "accepted" }]);
}

/** Lets history show what is younger than the watermark. */
const age = () =>
  server.db.query(
    sql(
      "test_age",
      `update run set materialized_at = materialized_at - interval '1 minute', finished_at = finished_at - interval '1 minute'
        where materialized_at > clock_timestamp() - interval '10 s'`,
    ),
  );

describe("what a run's schedule is called", () => {
  const names = async (run: string, scheduleId: string) => {
    const [one, many] = [await send("GET", `/v1/runs/${run}`), await send("GET", `/v1/schedules/${scheduleId}/runs`)];
    const listed = (many.body.items as { schedule: unknown }[])[0];
    return { one: one.body.schedule, listed: listed?.schedule };
  };

  it("stands beside its id, as it is now; a deleted one has given its key away", async () => {
    const scheduleId = await makeSchedule({ name: "Books", key: "books" });
    const run = String((await send("POST", `/v1/schedules/${scheduleId}/runs`, {})).body.runId);
    // Lists leave out the last seconds.
    await server.db.query(
      sql("test_earlier", "update run set materialized_at = materialized_at - interval '1 minute' where id = $1"),
      [readId("run", run)],
    );
    const called = { key: "books", name: "Books" };
    expect(await names(run, scheduleId)).toEqual({ one: called, listed: called });
    expect((await send("DELETE", `/v1/schedules/${scheduleId}`)).status).toBe(200);
    const deleted = { key: null, name: "Books" };
    expect(await names(run, scheduleId)).toEqual({ one: deleted, listed: deleted });
  });

  it("is null for a run without a schedule", async () => {
    expect((await send("GET", `/v1/runs/${await makeRun()}`)).body.schedule).toBeNull();
  });
});

describe("a run", () => {
  it("made ad hoc is read back as the authority has it", async () => {
    const run = await makeRun({ n: 1 });
    const answer = await send("GET", `/v1/runs/${run}`);
    expect(answer.status, answer.text).toBe(200);
    runSchema.parse(answer.body);
    expect(answer.body).toMatchObject({
      runId: run,
      scheduleId: null,
      state: "queued",
      attempt: 0,
      trigger: "api",
      job: REPORT,
      payload: { n: 1 },
      cancellationRequested: false,
      startedAt: null,
    });
  });

  it("of a schedule has the schedule's payload, or the one it was given", async () => {
    const schedule = await makeSchedule({ payload: { from: "schedule" } });
    const [plain, given] = [
      await send("POST", `/v1/schedules/${schedule}/runs`),
      await send("POST", `/v1/schedules/${schedule}/runs`, { payload: { from: "caller" } }),
    ];
    expect([plain.body.state, given.body.state]).toEqual(["queued", "blocked"]);
    expect((await send("GET", `/v1/runs/${String(plain.body.runId)}`)).body).toMatchObject({
      payload: { from: "schedule" },
      scheduleId: schedule,
      trigger: "manual",
    });
    expect((await send("GET", `/v1/runs/${String(given.body.runId)}`)).body).toMatchObject({
      payload: { from: "caller" },
      heldBy: "overlap",
    });
  });

  it("asked for twice under one key is one run; under another body it is refused; and its key finds it", async () => {
    const schedule = await makeSchedule();
    const path = `/v1/schedules/${schedule}/runs`;
    const key = { "idempotency-key": "now-1" };
    const first = await send("POST", path, {}, key);
    expect((await send("POST", path, undefined, key)).body.runId).toBe(first.body.runId);
    expect((await send("POST", path, { payload: {} }, key)).body.code).toBe("request-key-reused");
    const found = await send("GET", `/v1/runs?requestKey=now-1&scheduleId=${schedule}`);
    expect(found.body.items).toMatchObject([{ runId: first.body.runId }]);
    expect((await send("GET", "/v1/runs?requestKey=now-1")).body.code).toBe("not-accepted");
    expect(
      (await send("GET", `/v1/runs?requestKey=now-1&scheduleId=${schedule}`, undefined, {}, stranger)).status,
    ).toBe(404);
  });

  it("is refused where the overlap policy is skip and one is open", async () => {
    const schedule = await makeSchedule({ overlap: { policy: "skip" } });
    expect((await send("POST", `/v1/schedules/${schedule}/runs`)).status).toBe(201);
    const second = await send("POST", `/v1/schedules/${schedule}/runs`, {}, { "idempotency-key": "again" });
    expect([second.status, second.body.code]).toEqual([409, "overlap"]);
    expect((await send("GET", `/v1/runs?requestKey=again&scheduleId=${schedule}`)).body.code).toBe("not-accepted");
  });

  it("is canceled at once while it waits, by request while it runs, and not any more when it has ended", async () => {
    const waiting = await makeRun();
    expect((await send("POST", `/v1/runs/${waiting}/cancel`)).body).toEqual({
      runId: waiting,
      requested: true,
      accepted: true,
      callbackDueAt: null,
    });
    const late = await send("POST", `/v1/runs/${waiting}/cancel`);
    expect([late.status, late.body.code, late.body.state]).toEqual([409, "run-ended", "canceled"]);
    const running = await makeRun();
    await claim(running);
    expect((await send("POST", `/v1/runs/${running}/cancel`)).body).toMatchObject({ accepted: false });
    expect((await send("GET", `/v1/runs/${running}`)).body).toMatchObject({
      state: "running",
      attempt: 1,
      worker: "worker-a",
      cancellationRequested: true,
    });
  });

  it("of another tenant is a 404 to every verb", async () => {
    const run = await makeRun();
    for (const [method, rest] of [
      ["GET", ""],
      ["GET", "/attempts"],
      ["GET", "/result"],
      ["POST", "/cancel"],
    ] as const) {
      const answer = await send(method, `/v1/runs/${run}${rest}`, undefined, {}, stranger);
      expect([answer.status, answer.body.code], rest).toEqual([404, "not-found"]);
    }
    expect((await send("GET", `/v1/runs/${run}`)).body.state).toBe("queued");
  });
});

describe("a result", () => {
  it("is reached by a short-lived link that needs no key, in a cage, with its checksum, and is pinned meanwhile", async () => {
    const run = await makeRun();
    await finish(run, "<h1>report</h1><script>alert(1)</script>");
    const result = await send("GET", `/v1/runs/${run}/result`);
    expect(result.status, result.text).toBe(200);
    const link = String(result.body.url);
    expect(link.startsWith(server.url)).toBe(true);
    const bytes = await call("", "GET", link);
    expect(bytes.text).toBe("<h1>report</h1><script>alert(1)</script>");
    expect(createHash("sha256").update(bytes.text).digest("hex")).toBe(result.body.sha256);
    expect(bytes.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(bytes.headers.get("content-security-policy")).toMatch(/^sandbox allow-downloads; default-src 'none'/);
    expect(bytes.headers.get("content-disposition")).toContain(`${run}.html`);
    const [pin] = await server.db.query<{ ok: boolean }>(
      sql("test_pin", "select pin_until >= $2::timestamptz as ok from object where run_id = $1"),
      [readId("run", run), result.body.expiresAt],
    );
    expect(pin).toEqual({ ok: true });
    const attempts = await send("GET", `/v1/runs/${run}/attempts`);
    expect((attempts.body.items as unknown[]).map((one) => attemptSchema.parse(one))).toMatchObject([
      { attempt: 1, outcome: "succeeded", worker: "worker-a" },
    ]);
  });

  it("is not reached by a link that was changed, borrowed or has expired", async () => {
    const [run, other] = [await makeRun(), await makeRun()];
    await finish(run, "one");
    await finish(other, "two");
    const link = new URL(String((await send("GET", `/v1/runs/${run}/result`)).body.url));
    const attempt = async (change: (url: URL) => void) => {
      const url = new URL(link);
      change(url);
      return (await call("", "GET", url.href)).body.code;
    };
    expect(
      await attempt((url) => url.searchParams.set("expires", String(Number(url.searchParams.get("expires")) + 1))),
    ).toBe("invalid-link");
    expect(await attempt((url) => url.searchParams.set("signature", "A".repeat(43)))).toBe("invalid-link");
    expect(
      await attempt((url) => {
        url.pathname = `/v1/objects/${other}`;
      }),
    ).toBe("invalid-link");
    expect(await attempt((url) => url.searchParams.set("expires", "1"))).toBe("invalid-link");
    const sha256 = createHash("sha256").update("one").digest("hex");
    const past = Math.floor(Date.now() / 1000) - 1;
    const signature = createLinkSigner(SECRET).sign({ run, sha256, expires: past });
    expect(
      await attempt((url) => {
        url.search = `?expires=${past}&signature=${signature}`;
      }),
    ).toBe("invalid-link");
    server.objects.delete(`memory:${run}`);
    expect(await attempt(() => {})).toBe("result-expired");
  });

  it("that there is not is a 404 that says how far the run is", async () => {
    const run = await makeRun();
    expect((await send("GET", `/v1/runs/${run}/result`)).body).toMatchObject({ code: "no-result", state: "queued" });
    await finish(run, null);
    expect((await send("GET", `/v1/runs/${run}/result`)).body).toMatchObject({
      code: "no-result",
      state: "succeeded",
      status: 404,
    });
  });
});

describe("history", () => {
  it("is walked in pages without loss or repetition while new runs arrive", async () => {
    const key = await server.key(await server.tenant("historian"), "owner");
    const made: string[] = [];
    const make = async () => String((await send("POST", "/v1/runs", { job: REPORT }, {}, key)).body.runId);
    for (let i = 0; i < 7; i++) made.push(await make());
    await age();
    const seen: string[] = [];
    let next: string | null = "";
    let watermark: unknown;
    for (let pages = 0; next !== null && pages < 9; pages++) {
      const page = await send("GET", `/v1/runs?limit=3${next === "" ? "" : `&after=${next}`}`, undefined, {}, key);
      expect(page.status, page.text).toBe(200);
      seen.push(...(page.body.items as unknown[]).map((one) => runListItemSchema.parse(one).runId));
      next = page.body.next as string | null;
      // The same bound on every page, so what arrives meanwhile moves nothing.
      watermark ??= page.body.watermark;
      expect(page.body.watermark).toBe(watermark);
      await make();
    }
    expect(seen).toEqual(made.toSorted().reverse());
  });

  it("does not show what is younger than its watermark, and says so", async () => {
    const key = await server.key(await server.tenant("hasty"), "owner");
    await send("POST", "/v1/runs", { job: REPORT }, {}, key);
    expect((await send("GET", "/v1/runs", undefined, {}, key)).body.items).toEqual([]);
    await age();
    expect((await send("GET", "/v1/runs", undefined, {}, key)).body.items).toHaveLength(1);
  });

  it("may not show a run that was just made, which is there for whoever asks for it", async () => {
    const key = await server.key(await server.tenant("asker"), "owner");
    const made = await send("POST", "/v1/runs", { job: REPORT }, {}, key);
    const run = String(made.body.runId);
    expect((await send("GET", "/v1/runs", undefined, {}, key)).body).toMatchObject({ items: [], next: null });
    expect((await send("GET", `/v1/runs/${run}`, undefined, {}, key)).body).toMatchObject({
      runId: run,
      source: "authority",
    });
  });

  it("knows its bound to the microsecond, and what is put into the past meanwhile is on no later page", async () => {
    const tenant = await server.tenant("precise");
    const key = await server.key(tenant, "owner");
    for (let i = 0; i < 3; i++) await send("POST", "/v1/runs", { job: REPORT }, {}, key);
    await age();
    const first = await send("GET", "/v1/runs?limit=1", undefined, {}, key);
    // A cursor is signed, not secret: after 16 bytes of signature comes the bound in microseconds.
    const [micros] = JSON.parse(Buffer.from(String(first.body.next), "base64url").subarray(16).toString());
    const put = async (afterMicros: number) => {
      const id = mintId(Date.now() - 120_000 - afterMicros, 0);
      await server.db.query(
        sql(
          "test_put",
          `insert into run (id, scheduled_at, tenant_id, class, due_at, admitted_at, materialized_at, trigger, state, job)
           values ($1, instant_of($1::uuid), $2, 'short', now(), now(), 'epoch'::timestamptz + $3::bigint * interval '1 us',
                   'api', 'open', '{}')`,
        ),
        [id, tenant, micros + afterMicros],
      );
      return showId("run", id);
    };
    const [atBound, after] = [await put(0), await put(1)];
    const rest = await send("GET", `/v1/runs?after=${String(first.body.next)}`, undefined, {}, key);
    const ids = (rest.body.items as { runId: string }[]).map((one) => one.runId);
    expect(ids).toHaveLength(3);
    expect(ids).toContain(atBound);
    expect(ids).not.toContain(after);
  });

  it("is listed oldest first where that is asked, and by a label that its schedule has", async () => {
    const key = await server.key(await server.tenant("orderly"), "owner");
    const labeled = await makeSchedule({ labels: { team: "a=b" }, overlap: { policy: "allow" } }, key);
    const plain = await makeSchedule({ overlap: { policy: "allow" } }, key);
    const runs: string[] = [];
    for (const schedule of [labeled, plain, labeled])
      runs.push(String((await send("POST", `/v1/schedules/${schedule}/runs`, {}, {}, key)).body.runId));
    await age();
    const ids = async (query: string) =>
      ((await send("GET", `/v1/runs?${query}`, undefined, {}, key)).body.items as { runId: string }[]).map(
        (one) => one.runId,
      );
    expect(await ids("order=oldest")).toEqual(runs);
    expect(await ids("label=team=a=b")).toEqual([runs[2], runs[0]]);
    expect(await ids("label=team=a=b&state=queued&order=oldest")).toEqual([runs[0], runs[2]]);
    expect((await send("GET", "/v1/runs?label=team", undefined, {}, key)).body.detail).toMatch(/^label: /);
    expect((await send("GET", "/v1/runs?label=team=%00", undefined, {}, key)).status).toBe(400);
    const page = await send("GET", "/v1/runs?limit=1&order=oldest", undefined, {}, key);
    const turned = await send("GET", `/v1/runs?limit=1&after=${String(page.body.next)}`, undefined, {}, key);
    expect([turned.status, turned.body.code]).toEqual([400, "invalid-cursor"]);
  });

  it("is filtered by state, trigger, class and time, and a cursor belongs to its filters", async () => {
    const key = await server.key(await server.tenant("filterer"), "owner");
    const schedule = await makeSchedule({ class: "long" }, key);
    const runs: string[] = [];
    for (let i = 0; i < 3; i++)
      runs.push(String((await send("POST", `/v1/schedules/${schedule}/runs`, {}, {}, key)).body.runId));
    const adHoc = String((await send("POST", "/v1/runs", { job: REPORT }, {}, key)).body.runId);
    await send("POST", `/v1/runs/${adHoc}/cancel`, undefined, {}, key);
    await age();
    const ids = async (query: string) => {
      const page = await send("GET", query, undefined, {}, key);
      return (page.body.items as { runId: string }[]).map((one) => one.runId);
    };
    expect(await ids("/v1/runs?state=queued")).toEqual([runs[0]]);
    expect(await ids("/v1/runs?state=blocked")).toEqual([runs[2], runs[1]]);
    expect(await ids("/v1/runs?state=canceled")).toEqual([adHoc]);
    expect(await ids("/v1/runs?trigger=api")).toEqual([adHoc]);
    expect(await ids("/v1/runs?class=long")).toHaveLength(3);
    expect(await ids(`/v1/schedules/${schedule}/runs`)).toEqual(runs.toReversed());
    expect(await ids("/v1/runs?to=2020-01-01T00:00:00Z")).toEqual([]);
    expect(await ids("/v1/runs?from=2020-01-01T00:00:00%2B02:00")).toHaveLength(4);
    const page = await send("GET", "/v1/runs?limit=1", undefined, {}, key);
    const stolen = await send("GET", `/v1/runs?limit=1&class=long&after=${String(page.body.next)}`, undefined, {}, key);
    expect([stolen.status, stolen.body.code]).toEqual([400, "invalid-cursor"]);
    const foreign = await send("GET", `/v1/runs?limit=1&after=${String(page.body.next)}`, undefined, {}, stranger);
    expect(foreign.status).toBe(400);
  });
});

describe("the status", () => {
  it("says how far behind the machinery is", async () => {
    const answer = await send("GET", "/v1/status");
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body).toMatchObject({
      status: "ok",
      components: [],
      version: "0.0.0-test",
      tzVersion: expect.stringMatching(/^\d{4}[a-z]$/),
    });
  });
});

import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { mintKey } from "../../src/api/keys.ts";
import { cancelRuns } from "../../src/authority/runs/cancel.ts";
import { runAdHoc } from "../../src/authority/runs/run-ad-hoc.ts";
import { createApiKey } from "../../src/authority/tenants/create-api-key.ts";
import { type Payload, workSchema } from "../../src/domain/definition.ts";
import type { CallbackPass } from "../../src/handlers/callbacks.ts";
import { defineJob } from "../../src/handlers/registry.ts";
import { readId, type Uuid } from "../../src/kernel/ids.ts";
import { HERE, openTarget, reset, type Target } from "../handlers/http/scene.ts";
import { freePort } from "../support/free-port.ts";
import { type Node, startNode, until } from "../support/system.ts";
import { createWorld, type World } from "../support/world.ts";

/** HTTP jobs from a run that is born to its end, by a worker and an API, against a target of the tenant's. */
let world: World;
let node: Node;
let target: Target;
let inside: Target;
let publicUrl: string;

/** A function that leaves its work to somebody else: the test. */
const passes: CallbackPass[] = [];
const handingOn = defineJob({
  name: "test.hand-on",
  version: 1,
  input: z.unknown(),
  run(ctx) {
    passes.push(ctx.callback(ctx.deadlineAt));
    return { detached: {} };
  },
});

beforeAll(async () => {
  world = await createWorld();
  target = await openTarget();
  inside = await openTarget({ host: "127.0.0.1", port: target.port });
  const port = String(await freePort());
  publicUrl = `http://127.0.0.1:${port}`;
  node = await startNode({
    roles: ["worker", "sweeper", "api"],
    url: world.url,
    jobs: [handingOn],
    config: {
      PUNCTUAL_PORT: port,
      PUNCTUAL_PUBLIC_URL: publicUrl,
      PUNCTUAL_SECRET_KEYS: `a:${Buffer.alloc(32, 7).toString("base64")}`,
      PUNCTUAL_SECRET: "a secret for tests of callbacks",
      PUNCTUAL_OUTBOUND_ALLOW: HERE,
    },
  });
});
afterAll(async () => {
  await node?.stop();
  await target?.close();
  await inside?.close();
  await world?.check();
  await world?.close();
});
beforeEach(() => {
  reset(target);
  reset(inside);
});

async function run(job: object, change: { payload?: Payload; tenantId?: Uuid } = {}): Promise<Uuid> {
  const { payload = {}, tenantId = world.tenantId } = change;
  const work = workSchema.parse({
    job: "kind" in job ? job : { kind: "http", url: target.url, ...job },
    retry: { maxAttempts: 3, baseMs: 1, capMs: 10 },
  });
  const made = await runAdHoc(world.authority, { tenantId, actor: "test", work, payload });
  if (made.kind !== "created") throw new Error(made.kind);
  return made.runId;
}

type Ended = { state: string; error_code: string | null; error_message: string | null };
const stateOf = async (id: Uuid) => (await world.run(id)) as Ended;
async function ended(id: Uuid): Promise<Ended> {
  await until(
    "the run ends",
    async () => (await stateOf(id)).state !== "open",
    20_000,
    () => stateOf(id),
  );
  return stateOf(id);
}

const attemptsOf = async (id: Uuid) =>
  (
    await world.admin.query(
      "select n, outcome, error_code, started_at, ended_at from attempt where run_id = $1 order by n",
      [id],
    )
  ).rows;

/** What a target does that was given a pass. */
async function callBack(headers: Record<string, string | string[] | undefined>, verb: string, body: object) {
  const answer = await fetch(`${headers["punctual-callback-url"]}/${verb}`, {
    method: "POST",
    headers: { authorization: `Bearer ${headers["punctual-callback-token"]}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

describe("a run of an HTTP job", () => {
  test("calls its target with its payload, and the answer is its result", async () => {
    target.answer = (response) => void response.writeHead(200, { "content-type": "text/csv" }).end("a,b\n");
    const id = await run({ url: `${target.url}/{{payload.id}}` }, { payload: { id: "x y" } });
    expect(await ended(id)).toMatchObject({ state: "succeeded" });
    expect(target.calls).toMatchObject([{ path: "/x%20y", headers: { "punctual-attempt": "1" } }]);
    const { rows } = await world.admin.query("select name, media_type, size::int from object where run_id = $1", [id]);
    expect(rows).toEqual([{ name: "response", media_type: "text/csv", size: 4 }]);
  });

  test("that is turned away is tried again under the same key with a higher fence, and not before it is asked to", async () => {
    target.answer = (response) =>
      target.calls.length === 1
        ? void response.writeHead(503, { "retry-after": "1" }).end("busy")
        : void response.writeHead(204).end();
    const id = await run({});
    expect(await ended(id)).toMatchObject({ state: "succeeded" });
    const [one, two] = target.calls.map(({ headers }) => headers);
    expect(two!["idempotency-key"]).toBe(one!["idempotency-key"]);
    expect(Number(two!["punctual-fence"])).toBeGreaterThan(Number(one!["punctual-fence"]));
    const [first, second] = await attemptsOf(id);
    expect(first).toMatchObject({ outcome: "failed", error_code: "http-503" });
    expect(second.started_at.getTime() - first.ended_at.getTime()).toBeGreaterThanOrEqual(1_000);
  });

  test("that is refused has a dead letter after one attempt (B58)", async () => {
    target.answer = (response) => void response.writeHead(404).end("no such thing");
    const id = await run({});
    expect(await ended(id)).toMatchObject({
      state: "failed",
      error_code: "http-404",
      error_message: `${target.url} answered 404: no such thing`,
    });
    expect(target.calls).toHaveLength(1);
    const { rows } = await world.admin.query("select reason from dead_letter where run_id = $1", [id]);
    expect(rows).toEqual([{ reason: "permanent" }]);
  });

  test("that leads where nobody may go fails at once, and nothing is connected to (B55)", async () => {
    const names = ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]"];
    for (const host of names) {
      const id = await run({ url: `http://${host}:${inside.port}/` });
      expect(await ended(id), host).toMatchObject({ state: "failed", error_code: "target-blocked" });
      expect(await attemptsOf(id)).toHaveLength(1);
    }
    expect(inside.connections).toBe(0);
  });

  test("goes by the rules of its tenant", async () => {
    const allowed = await world.newTenant("allowed");
    const held = await world.newTenant("held");
    const say = (id: Uuid, rules: object) =>
      world.admin.query("update tenant set outbound = $2 where id = $1", [id, JSON.stringify(rules)]);
    await say(allowed, { allow: ["127.0.0.1"], hosts: null, ports: null });
    await say(held, { allow: [], hosts: ["example.com"], ports: null });
    expect(await ended(await run({ url: inside.url }, { tenantId: allowed }))).toMatchObject({ state: "succeeded" });
    expect(await ended(await run({}, { tenantId: held }))).toMatchObject({ error_code: "target-blocked" });
    expect([inside.calls.length, target.connections]).toEqual([1, 0]);
  });

  test("that is canceled lets go of its call", async () => {
    const gone = new Promise<void>((resolve) => {
      target.answer = (response) => void response.once("close", resolve);
    });
    const id = await run({});
    await until("it calls", () => target.calls.length === 1);
    await cancelRuns(world.authority, [{ tenantId: world.tenantId, runId: id, actor: "test" }]);
    await gone;
    expect(await ended(id)).toMatchObject({ state: "canceled" });
  });
});

test("a secret of the payload goes out in a header, and nowhere else", async () => {
  const token = "a-token-of-a-bank";
  target.answer = (response, { headers }) => void response.writeHead(401).end(`bad ${headers.authorization}`);
  const minted = mintKey();
  await createApiKey(world.authority, { tenantId: world.tenantId, role: "operator", label: "test", ...minted });
  const job = { kind: "http", url: target.url, headers: { Authorization: "Bearer {{payload.token}}" } };
  const made = await fetch(`${publicUrl}/v1/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${minted.key}`, "content-type": "application/json" },
    body: JSON.stringify({ job, payload: { token: { $secret: token } } }),
  });
  const id = readId("run", ((await made.json()) as { runId: string }).runId)!;
  expect(await ended(id)).toMatchObject({ error_code: "http-401", error_message: expect.stringContaining("[secret]") });
  expect(target.calls).toMatchObject([{ headers: { authorization: `Bearer ${token}` }, body: `{"token":"${token}"}` }]);
  expect(JSON.stringify(await world.run(id))).not.toContain(token);
});

test("a function's work goes on elsewhere, with a pass for who says how it ended", async () => {
  const id = await run({ kind: "function", name: "test.hand-on", version: 1 });
  await until("it is handed on", () => passes.length === 1);
  const { url, token } = passes[0]!;
  const headers = { "punctual-callback-url": url, "punctual-callback-token": token };
  expect(await callBack(headers, "complete", {})).toMatchObject({ status: 200 });
  expect(await ended(id)).toMatchObject({ state: "succeeded" });
});

describe("a run whose target calls back", () => {
  const callback = { completion: "callback" };

  test("goes on elsewhere after a 202, and ends by the target's word", async () => {
    target.answer = (response) => void response.writeHead(202).end();
    const id = await run(callback);
    await until("it is let go of", async () => {
      const { rows } = await world.admin.query("select worker from live_run where id = $1", [id]);
      return target.calls.length === 1 && rows[0]?.worker === null;
    });
    const { headers } = target.calls[0]!;
    expect(await callBack(headers, "complete", {})).toMatchObject({ status: 200 });
    expect(await ended(id)).toMatchObject({ state: "succeeded" });
    // The same again is answered the same.
    expect(await callBack(headers, "complete", {})).toMatchObject({ status: 200 });
  });

  test("may be ended before its worker has said that it let go", async () => {
    const said: unknown[] = [];
    target.answer = async (response, { headers }) => {
      said.push((await callBack(headers, "complete", {})).status);
      response.writeHead(202).end();
    };
    expect(await ended(await run(callback))).toMatchObject({ state: "succeeded" });
    expect(said).toEqual([200]);
  });

  test("is tried again when the target says so, and then the old token opens nothing", async () => {
    target.answer = (response) => void response.writeHead(target.calls.length === 1 ? 202 : 204).end();
    const id = await run(callback);
    await until("it calls", () => target.calls.length === 1);
    const { headers } = target.calls[0]!;
    const failure = { code: "upstream", message: "not today", transient: true };
    expect(await callBack(headers, "fail", failure)).toMatchObject({ status: 200 });
    expect(await ended(id)).toMatchObject({ state: "succeeded" });
    expect(target.calls).toHaveLength(2);
    expect(await callBack(headers, "complete", {})).toMatchObject({ status: 409, body: { code: "stale-fence" } });
    expect((await attemptsOf(id)).map((one) => one.error_code)).toEqual(["upstream", null]);
  });
});

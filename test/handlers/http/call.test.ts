import { Webhook } from "standardwebhooks";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { knowSecrets } from "../../../src/domain/secrets/known.ts";
import { outboundOf } from "../../support/outbound.ts";
import { attempt, openTarget, reset, type Target } from "./scene.ts";

let target: Target;
beforeAll(async () => {
  target = await openTarget();
});
afterAll(() => target.close());
beforeEach(() => reset(target));

const RUN = "run_01kct0v2mz8h3bmq5d0v5x2c9r";

describe("an HTTP job", () => {
  it("posts its payload, and says whose run it is and which attempt", async () => {
    const { outcome } = await attempt({ url: `${target.url}/hook` }, { payload: { customer: "Ä", n: 1 } });
    expect(outcome.kind).toBe("succeeded");
    expect(target.calls).toMatchObject([
      {
        method: "POST",
        path: "/hook",
        body: '{"customer":"Ä","n":1}',
        headers: {
          "content-type": "application/json",
          "content-length": "23",
          "user-agent": "Punctual/test",
          "idempotency-key": RUN,
          "punctual-run": RUN,
          "punctual-attempt": "1",
          "punctual-fence": "1",
          "punctual-scheduled-at": "2026-11-29T18:00:00.000Z",
        },
      },
    ]);
    const names = Object.keys(target.calls[0]!.headers);
    expect(names.filter((name) => /^webhook-|^punctual-callback/.test(name))).toEqual([]);
  });

  it("fills in where the definition says so, each in the manner of its place", async () => {
    const payload = { id: "a/b ?&=ü", token: "s3cret", order: { lines: [1, 2] }, note: 'say "hi"' };
    await attempt(
      {
        url: `${target.url}/orders/{{payload.id}}?run={{ run.id }}&id={{payload.id}}`,
        method: "PUT",
        headers: { Authorization: "Bearer {{payload.token}}", Accept: "application/json" },
        body: { json: { order: "{{payload.order}}", text: "note: {{payload.note}}", at: "{{run.scheduledAt}}" } },
      },
      { payload },
    );
    const id = encodeURIComponent(payload.id);
    expect(target.calls).toMatchObject([
      {
        method: "PUT",
        path: `/orders/${id}?run=${RUN}&id=${id}`,
        headers: { authorization: "Bearer s3cret", accept: "application/json" },
      },
    ]);
    expect(JSON.parse(target.calls[0]!.body)).toEqual({
      order: { lines: [1, 2] },
      text: 'note: say "hi"',
      at: "2026-11-29T18:00:00.000Z",
    });
  });

  it("sends text as text, and nothing where nothing is to be sent", async () => {
    const payload = { name: "x" };
    await attempt({ url: target.url, body: { text: "hello {{payload.name}}" } }, { payload });
    await attempt({ url: target.url, method: "GET" }, { payload });
    await attempt({ url: target.url, method: "DELETE", body: null }, { payload });
    expect(target.calls.map(({ method, body, headers }) => [method, body, headers["content-type"]])).toEqual([
      ["POST", "hello x", "text/plain; charset=utf-8"],
      ["GET", "", undefined],
      ["DELETE", "", undefined],
    ]);
  });

  it("is signed with the tenant's keys, over the bytes that are sent, under the run's id", async () => {
    const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    await attempt({ url: target.url }, { payload: { n: 1 }, tools: { keys: { keysOf: async () => keys } } });
    const { body, headers } = target.calls[0]!;
    expect(headers["webhook-id"]).toBe(RUN);
    for (const key of keys) {
      expect(new Webhook(key.toString("base64")).verify(body, headers as Record<string, string>)).toEqual({ n: 1 });
    }
  });

  it("is not sent where nobody knows where it may lead", async () => {
    const outbound = outboundOf({ rulesOf: () => Promise.reject(new Error("connect ECONNREFUSED 10.1.2.3:5432")) });
    const { outcome } = await attempt({ url: target.url }, { tools: { outbound } });
    expect(outcome).toMatchObject({ kind: "failed", transient: true, code: "rules-unavailable" });
    expect(JSON.stringify(outcome)).not.toContain("5432");
    expect(target.connections).toBe(0);
  });

  it("is not sent unsigned where the keys cannot be had", async () => {
    const keysOf = () => Promise.reject(new Error("no master key"));
    const { outcome } = await attempt({ url: target.url }, { tools: { keys: { keysOf } } });
    expect(outcome).toMatchObject({ kind: "failed", transient: true, code: "signing-unavailable" });
    expect(target.connections).toBe(0);
  });
});

describe("its answer", () => {
  it("is the run's result, with its type", async () => {
    target.answer = (response) =>
      void response.writeHead(201, { "content-type": "text/csv; charset=utf-8" }).end("a,b\n1,2\n");
    const { outcome, ctx } = await attempt({ url: target.url });
    expect(outcome).toMatchObject({ kind: "succeeded", output: { name: "response" } });
    expect(ctx.staged).toEqual([{ name: "response", mediaType: "text/csv; charset=utf-8", text: "a,b\n1,2\n" }]);
  });

  it("is a success whatever the body says (B58), of a type that is one", async () => {
    target.answer = (response) =>
      void response.writeHead(200, { "content-type": "no type\tat all" }).end('{"error":1}');
    const { outcome, ctx } = await attempt({ url: target.url });
    expect(outcome.kind).toBe("succeeded");
    expect(ctx.staged).toMatchObject([{ mediaType: "application/octet-stream", text: '{"error":1}' }]);
  });

  it.each([
    [200, "GET"],
    [204, "POST"],
    [200, "HEAD"],
  ] as const)("without a body (%i to %s) is a success without a result (B58)", async (status, method) => {
    target.answer = (response) => void response.writeHead(status, { "content-encoding": "gzip" }).end();
    const { outcome, ctx } = await attempt({ url: target.url, method });
    expect(outcome).toEqual({ kind: "succeeded" });
    expect(ctx.staged).toEqual([]);
  });
});

describe("what a status means (B58)", () => {
  const answering = async (status: number, job = {}, headers: Record<string, string> = {}) => {
    target.answer = (response) => void response.writeHead(status, headers).end(`because of ${status}`);
    return (await attempt({ url: target.url, ...job })).outcome;
  };

  it.each([400, 401, 403, 404, 409, 410, 422])("%i is a failure, once and for all", async (status) => {
    expect(await answering(status)).toEqual({
      kind: "failed",
      transient: false,
      code: `http-${status}`,
      message: `${target.url} answered ${status}: because of ${status}`,
    });
    expect(target.calls).toHaveLength(1);
  });

  it.each([408, 425, 429, 500, 502, 503, 504])("%i is tried again", async (status) => {
    expect(await answering(status)).toMatchObject({ kind: "failed", transient: true, code: `http-${status}` });
  });

  it.each([301, 302, 303, 307, 308])("%i is a failure: redirects are not followed", async (status) => {
    const outcome = await answering(status, {}, { location: `${target.url}/elsewhere` });
    expect(outcome).toMatchObject({ kind: "failed", transient: false, code: "http-redirect" });
    expect(target.calls).toHaveLength(1);
  });

  it("is the schedule's to say otherwise", async () => {
    expect(await answering(400, { retryStatuses: [400] })).toMatchObject({ transient: true, code: "http-400" });
    expect(await answering(500, { retryStatuses: [400] })).toMatchObject({ transient: false, code: "http-500" });
    expect(await answering(404, { expectedStatuses: ["2xx", 404] })).toMatchObject({ kind: "succeeded" });
    expect(await answering(204, { expectedStatuses: [200] })).toMatchObject({ transient: false, code: "http-204" });
    const location = { location: "/x" };
    expect(await answering(302, { expectedStatuses: [302] }, location)).toMatchObject({ kind: "succeeded" });
    expect(await answering(302, { retryStatuses: ["3xx"] }, location)).toMatchObject({ code: "http-302" });
  });

  const date = (ms: number) => new Date(Date.now() + ms).toUTCString();
  it.each([
    ["120", 120_000, 120_000],
    // The domain believes nobody beyond a day.
    ["999999999", 86_400_000, Number.MAX_SAFE_INTEGER],
    ["9".repeat(400), 86_400_000, Number.MAX_SAFE_INTEGER],
    [date(90_000), 60_000, 90_000],
    [date(-90_000), undefined, undefined],
    ["-1", undefined, undefined],
    ["soon", undefined, undefined],
    ["1.5", undefined, undefined],
    ["0", undefined, undefined],
    ["2027-01-01", undefined, undefined],
    ["", undefined, undefined],
  ])("a Retry-After of %j asks to wait from %s to %s ms", async (header, least, most) => {
    const outcome = await answering(503, {}, { "retry-after": header });
    const { retryAfterMs } = outcome as { retryAfterMs?: number };
    if (least === undefined) expect(retryAfterMs).toBeUndefined();
    else {
      expect(retryAfterMs).toBeGreaterThanOrEqual(least);
      expect(retryAfterMs).toBeLessThanOrEqual(most!);
    }
  });
});

describe("a failure's message", () => {
  it("has the beginning of the answer, and no secret of the payload", async () => {
    const token = "a-very-secret-token";
    target.answer = (response, call) =>
      void response.writeHead(422).end(`${call.headers.authorization} ${"x".repeat(100_000)}`);
    const { outcome } = await attempt(
      { url: target.url, headers: { authorization: "Bearer {{payload.token}}" } },
      { payload: { token }, secrets: knowSecrets([{ path: ["token"], value: token }]) },
    );
    const { message } = outcome as { message: string };
    expect(message).toMatch(/answered 422: Bearer \[secret\] x+ …$/);
    expect(message.length).toBeLessThan(600);
    expect(target.calls[0]!.headers.authorization).toBe(`Bearer ${token}`);
  });

  it("has no piece of a secret either that goes on where the reading of the answer ends", async () => {
    const token = `tiger-${"9f2c1d".repeat(6_000)}`;
    target.answer = (response) => void response.writeHead(422).end(`${token} ${token} ${token}`);
    const secrets = knowSecrets([{ path: ["token"], value: token }]);
    const { outcome } = await attempt({ url: target.url }, { payload: { token }, secrets });
    const { message } = outcome as { message: string };
    expect(message).toMatch(/answered 422/);
    expect(message).not.toMatch(/tiger|9f2c/);
  });

  it("does not wait for the rest of an answer that never ends", async () => {
    target.answer = (response) => void response.writeHead(500).write("x".repeat(70_000));
    const { outcome } = await attempt({ url: target.url });
    expect(outcome).toMatchObject({ code: "http-500", message: expect.stringMatching(/xxx …$/) });
  });
});

describe("what is filled in and would be too long", () => {
  const many = "{{payload}}".repeat(100);
  const payload = { a: "x".repeat(60_000) };
  it.each([
    ["url", { path: `/?${many}` }],
    ["url", { path: `/${many}` }],
    ["headers.x", { headers: { x: many } }],
    ["body.text", { body: { text: many } }],
    ["body.json", { body: { json: [many] } }],
  ])("is never put together, let alone sent: %s", async (field, { path = "", ...job }: Templates) => {
    const { outcome } = await attempt({ url: `${target.url}${path}`, ...job }, { payload });
    expect(outcome).toMatchObject({ kind: "failed", transient: false, code: "http-request-invalid" });
    expect((outcome as { message: string }).message).toMatch(`${field}: as filled in, `);
    expect(target.connections).toBe(0);
  });
});

describe("what is filled in and would change the request", () => {
  it.each([
    [{ headers: { "x-note": "{{payload.v}}" } }, "a\r\nx-admin: yes", /^headers\.x-note: comes out with characters/],
    [{ headers: { "x-note": "{{payload.v}}" } }, "a\nb", /^headers\.x-note/],
    [{ headers: { "x-note": "{{payload.v}}" } }, "a\0b", /^headers\.x-note/],
    [{ headers: { "x-note": "{{payload.v}}" } }, "ü", /^headers\.x-note/],
    [{ path: "/a/{{payload.v}}/b" }, "..", /^url: .*would lead elsewhere/],
    [{ path: "/a/{{payload.v}}" }, ".", /^url: .*would lead elsewhere/],
    [{ path: "/a/.{{payload.v}}/b" }, ".", /^url: .*would lead elsewhere/],
    [{ path: "/a/{{payload.v}}" }, "", /^url: a placeholder in its path stands for nothing/],
    [{ path: "/a/{{payload.missing.field}}" }, "x", /^url: a placeholder in its path stands for nothing/],
  ] as const)(
    "is refused before anything is sent: %j with %j",
    async ({ path = "", ...job }: Templates, v, message) => {
      const { outcome } = await attempt({ url: `${target.url}${path}`, ...job }, { payload: { v } });
      expect(outcome).toMatchObject({ transient: false, code: "http-request-invalid" });
      expect((outcome as { message: string }).message).toMatch(message);
      expect(target.connections).toBe(0);
    },
  );

  it("and stays in its place otherwise", async () => {
    const v = "../..\\x#?%2e%2e/\r\n\tä";
    await attempt({ url: `${target.url}/a/{{payload.v}}/b?q={{payload.v}}` }, { payload: { v } });
    expect(target.calls[0]!.path).toBe(`/a/${encodeURIComponent(v)}/b?q=${encodeURIComponent(v)}`);
  });
});

type Templates = {
  path?: string;
  headers?: Record<string, string>;
  body?: { text: string } | { json: string[] };
};

describe("with a callback", () => {
  it("brings where and by what right, and lets the work go on elsewhere after a 202", async () => {
    target.answer = (response) => void response.writeHead(202).end("accepted");
    const job = { url: target.url, completion: "callback", callbackWithinMs: 60_000 } as const;
    const { outcome, ctx } = await attempt(job);
    expect(outcome).toEqual({ kind: "detached", callbackWithinMs: 60_000 });
    expect(ctx.staged).toEqual([]);
    expect(target.calls[0]!.headers).toMatchObject({
      "punctual-callback-url": "https://punctual.example.com/v1/worker",
      "punctual-callback-token": "cb_token",
    });
  });

  it("is over at once where the target has done it already, and fails as others do", async () => {
    const job = { url: target.url, completion: "callback" } as const;
    target.answer = (response) => void response.writeHead(200).end("done");
    expect((await attempt(job)).ctx.staged).toMatchObject([{ text: "done" }]);
    target.answer = (response) => void response.writeHead(404).end();
    expect((await attempt(job)).outcome).toMatchObject({ transient: false, code: "http-404" });
  });

  it("without one a 202 is a success like any other", async () => {
    target.answer = (response) => void response.writeHead(202).end("accepted");
    expect((await attempt({ url: target.url })).outcome.kind).toBe("succeeded");
  });
});

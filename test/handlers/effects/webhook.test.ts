import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { Webhook } from "standardwebhooks";
import { describe, expect, it, onTestFinished } from "vitest";
import { knowSecrets } from "../../../src/domain/secrets/known.ts";
import { createWebhookAdapter } from "../../../src/handlers/effects/webhook.ts";
import type { SigningKeys } from "../../../src/handlers/outbound/signing.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { outboundOf } from "../../support/outbound.ts";
import { outgoing, patient } from "./outgoing.ts";

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

async function receiver(handle: Handler): Promise<{ url: string; calls: number }> {
  const seen = { url: "", calls: 0 };
  const server = createServer(async (request, response) => {
    seen.calls++;
    handle(request, response, await text(request).catch(() => ""));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  seen.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return seen;
}

type Change = Parameters<typeof outboundOf>[0] & { keysOf?: SigningKeys["keysOf"]; now?: () => number };

function adapter({ keysOf = async () => [], now = () => Date.UTC(2026, 0, 1), ...ways }: Change = {}) {
  return createWebhookAdapter({
    outbound: outboundOf(ways),
    keys: { keysOf },
    concurrency: 4,
    userAgent: "Punctual/test",
    clock: { ...systemClock, now },
  });
}

const hook = (url: string, change = {}) => outgoing({ name: "hook", kind: "webhook", url, ...change });
const answering = (status: number, headers: Record<string, string> = {}, body = "") =>
  receiver((_request, response) => response.writeHead(status, headers).end(body));

describe("a webhook", () => {
  it("posts the run with its result's link, under a key that never changes", async () => {
    const seen: { headers: IncomingMessage["headers"]; body: unknown }[] = [];
    const { url } = await receiver((request, response, body) => {
      seen.push({ headers: request.headers, body: JSON.parse(body) });
      response.writeHead(202, { "x-request-id": "abc" }).end("ok");
    });
    const effect = hook(url, { headers: { "x-team": "sales" } });
    const one = adapter();
    expect(await one.send(effect, patient())).toEqual({ kind: "sent", externalId: "abc", message: null });
    await one.send(effect, patient());
    expect(seen[1]).toMatchObject({ body: seen[0]!.body, headers: { "idempotency-key": "mail-run_01" } });
    expect(seen[0]).toMatchObject({
      headers: {
        "idempotency-key": "mail-run_01",
        "content-type": "application/json",
        "user-agent": "Punctual/test",
        "x-team": "sales",
      },
      body: {
        type: "run.succeeded",
        actionId: "mail-run_01",
        schedule: { id: "sch_01" },
        run: { id: "run_01", scheduledAt: "2026-11-30T14:00:00.000Z", attempt: 1 },
        result: { url: expect.stringContaining("/v1/objects/run_01"), size: 12 },
      },
    });
  });

  it.each([
    [200, "sent", undefined],
    [204, "sent", undefined],
    [400, "refused", false],
    [404, "refused", false],
    [410, "refused", false],
    [301, "refused", false],
    [408, "refused", true],
    [429, "refused", true],
    // Whoever says so does not say what was done by then: the receiver itself, a gateway, or one in front of that.
    [500, "unknown", undefined],
    [502, "unknown", undefined],
    [503, "unknown", undefined],
    [504, "unknown", undefined],
    [520, "unknown", undefined],
    [522, "unknown", undefined],
    [524, "unknown", undefined],
    [598, "unknown", undefined],
    [599, "unknown", undefined],
  ] as const)("answered with %i is %s", async (status, kind, transient) => {
    const { url } = await answering(status);
    expect(await adapter().send(hook(url), patient())).toMatchObject({
      kind,
      ...(transient === undefined ? {} : { transient }),
    });
  });

  it("whose first call is still under way (409) is asked again, unless its receiver knows no keys", async () => {
    const { url } = await answering(409);
    expect(await adapter().send(hook(url), patient())).toMatchObject({ kind: "refused", transient: true });
    expect(await adapter().send(hook(url, { idempotencyWindowMs: 0 }), patient())).toMatchObject({
      kind: "refused",
      transient: false,
    });
  });

  it("waits as long as its receiver asks, in seconds or until a date", async () => {
    const seconds = await answering(429, { "retry-after": "120" }, "slow down");
    expect(await adapter().send(hook(seconds.url), patient())).toMatchObject({
      retryAfterMs: 120_000,
      message: "the receiver answered 429: slow down",
    });
    const date = await answering(503, { "retry-after": "Thu, 01 Jan 2026 00:05:00 GMT" });
    expect(await adapter().send(hook(date.url), patient())).toMatchObject({ retryAfterMs: 300_000 });
    const nonsense = await answering(503, { "retry-after": "soon" });
    expect(await adapter().send(hook(nonsense.url), patient())).toMatchObject({ retryAfterMs: undefined });
  });

  it("whose answer is lost may have happened", async () => {
    const lost = await receiver((request) => request.socket.destroy());
    expect(await adapter().send(hook(lost.url), patient())).toMatchObject({ kind: "unknown" });
    expect(lost.calls).toBe(1);
  });

  it("whose answer does not come may have happened", async () => {
    const silent = await receiver(() => undefined);
    const said = await adapter().send(hook(silent.url, { timeoutMs: 1000 }), patient());
    expect(said).toMatchObject({ kind: "unknown", message: expect.stringMatching(/Headers Timeout/) });
  });

  it("whose sender is told to stop may have happened", async () => {
    const stop = new AbortController();
    const silent = await receiver(() => stop.abort());
    expect(await adapter().send(hook(silent.url), stop.signal)).toMatchObject({ kind: "unknown" });
  });

  it("is sent once the status is said, however slow or endless the rest of the answer", async () => {
    const stalls = await receiver((_request, response) => void response.writeHead(200).write("one byte and no more"));
    expect(await adapter().send(hook(stalls.url), patient())).toMatchObject({ kind: "sent" });
    const endless = await receiver((_request, response) => {
      response.writeHead(500);
      const more = () => void (response.write("x".repeat(65_536)) ? setImmediate(more) : response.once("drain", more));
      more();
    });
    expect(await adapter().send(hook(endless.url), patient())).toMatchObject({
      message: `the receiver answered 500: ${"x".repeat(500)} …`,
    });
  });

  it("whose receiver says a secret back where what is shown of it ends shows no piece of it", async () => {
    const secret = "tiger-9f2c1d";
    const { url } = await answering(400, {}, `${"x".repeat(490)} ${secret} and more`);
    const secrets = knowSecrets([{ path: [], value: secret }]);
    const said = await adapter().send({ ...hook(url), headers: { "x-api-key": secret }, secrets }, patient());
    expect(said).toMatchObject({ message: expect.stringMatching(/^the receiver answered 400: /) });
    expect((said as { message: string }).message).not.toMatch(/tig/);
  });

  it("is listened to for its time and no longer, however small the steps in which its answer comes", async () => {
    let dripped = 0;
    const gone = Promise.withResolvers<void>();
    const drips = await receiver((_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write("x", () => dripped++), 50);
      response.once("close", () => gone.resolve(clearInterval(drip)));
    });
    expect(await adapter().send(hook(drips.url, { timeoutMs: 1000 }), patient())).toMatchObject({ kind: "sent" });
    await gone.promise;
    // All of what a person wants to see would have been 25 seconds.
    expect(dripped).toBeLessThan(400);
  });

  it("that nobody takes, or that nobody can find, did not happen", async () => {
    expect(await adapter().send(hook("http://127.0.0.1:1/"), patient())).toMatchObject({
      kind: "refused",
      transient: true,
      message: expect.stringContaining("ECONNREFUSED"),
    });
    const nowhere = adapter({ allow: [] });
    expect(await nowhere.send(hook("http://nowhere.example/"), patient())).toMatchObject({
      kind: "refused",
      transient: true,
    });
  });
});

describe("an address that is not public", () => {
  it("is refused for good, whatever leads there, and nothing is sent", async () => {
    const inside = await answering(200);
    const port = new URL(inside.url).port;
    const one = adapter({ allow: [], names: { "inside.example": "127.0.0.1", "six.example": "::ffff:127.0.0.1" } });
    for (const host of ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "inside.example", "six.example"]) {
      const said = await one.send(hook(`http://${host}:${port}/`), patient());
      expect([host, said.kind, "transient" in said && said.transient]).toEqual([host, "refused", false]);
    }
    expect(inside.calls).toBe(0);
  });

  it("is not reached by a redirect either: those are not followed", async () => {
    const inside = await answering(200);
    const outside = await answering(302, { location: inside.url });
    expect(await adapter().send(hook(outside.url), patient())).toMatchObject({ kind: "refused", transient: false });
    expect(inside.calls).toBe(0);
  });

  it("is dialled as it was looked at, not as the name says a moment later", async () => {
    const inside = await answering(200);
    let asked = 0;
    const rebinding = adapter({
      allow: ["127.0.0.2/32"],
      resolveName: async () => [{ address: ++asked === 1 ? "127.0.0.2" : "127.0.0.1", family: 4 }],
    });
    const said = await rebinding.send(hook(`http://rebind.example:${new URL(inside.url).port}/`), patient());
    // 127.0.0.2 is where the receiver does not listen; the second reading would have led to it.
    expect([said.kind, asked, inside.calls]).toEqual(["refused", 1, 0]);
  });
});

describe("a webhook of a tenant with signing keys", () => {
  it("is signed with each of them, under its action id, in every attempt anew", async () => {
    const seen: { headers: Record<string, string>; body: string }[] = [];
    const { url } = await receiver((request, response, body) => {
      seen.push({ headers: request.headers as Record<string, string>, body });
      response.writeHead(204).end();
    });
    const keys = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const asked: string[] = [];
    const keysOf = async (tenantId: string) => {
      asked.push(tenantId);
      return keys;
    };
    const one = adapter({ keysOf, now: Date.now });
    const effect = hook(url);
    await one.send(effect, patient());
    expect(asked).toEqual([effect.tenantId]);
    expect(seen[0]!.headers).toMatchObject({ "webhook-id": effect.actionId, "idempotency-key": effect.actionId });
    for (const key of keys) {
      const { body, headers } = seen[0]!;
      expect(new Webhook(key.toString("base64")).verify(body, headers)).toMatchObject({ type: "run.succeeded" });
    }
  });

  it("is not sent unsigned where they cannot be had: it is tried again", async () => {
    const { url, calls } = await receiver((_request, response) => void response.writeHead(204).end());
    const one = adapter({ keysOf: () => Promise.reject(new Error("no master key")) });
    expect(await one.send(hook(url), patient())).toEqual({
      kind: "refused",
      transient: true,
      message: "it could not be signed: no master key",
    });
    expect(calls).toBe(0);
  });
});

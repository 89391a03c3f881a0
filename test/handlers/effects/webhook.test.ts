import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { createWebhookAdapter } from "../../../src/handlers/effects/webhook.ts";
import { createOutboundAgent } from "../../../src/handlers/outbound/agent.ts";
import { createOutboundGuard } from "../../../src/handlers/outbound/guard.ts";
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

function adapter(
  allowed: readonly string[] = ["127.0.0.0/8"],
  resolveName?: Parameters<typeof createOutboundGuard>[1],
) {
  const made = createWebhookAdapter({
    agent: createOutboundAgent({ guard: createOutboundGuard(allowed, resolveName), connectTimeoutMs: 1_000 }),
    concurrency: 4,
    userAgent: "Punctual/test",
    now: () => Date.UTC(2026, 0, 1),
  });
  onTestFinished(() => made.close());
  return made;
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
      message: `the receiver answered 500: ${"x".repeat(500)}`,
    });
  });

  it("that nobody takes, or that nobody can find, did not happen", async () => {
    expect(await adapter().send(hook("http://127.0.0.1:1/"), patient())).toMatchObject({
      kind: "refused",
      transient: true,
      message: expect.stringContaining("ECONNREFUSED"),
    });
    const nowhere = adapter([], async () => {
      throw Object.assign(new Error("getaddrinfo ENOTFOUND"), { syscall: "getaddrinfo", code: "ENOTFOUND" });
    });
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
    const names: Record<string, string> = { "inside.example": "127.0.0.1", "six.example": "::ffff:127.0.0.1" };
    const one = adapter([], async (host) => [{ address: names[host]!, family: host === "six.example" ? 6 : 4 }]);
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
    const rebinding = adapter(["127.0.0.2/32"], async () => {
      asked++;
      return [{ address: asked === 1 ? "127.0.0.2" : "127.0.0.1", family: 4 }];
    });
    const said = await rebinding.send(hook(`http://rebind.example:${new URL(inside.url).port}/`), patient());
    // 127.0.0.2 is where the receiver does not listen; the second reading would have led to it.
    expect([said.kind, asked, inside.calls]).toEqual(["refused", 1, 0]);
  });
});

describe("the guard", () => {
  const guard = createOutboundGuard(["10.1.0.0/16", "fd00::/8"]);
  const family = (address: string) => (address.includes(":") ? `[${address}]` : address);

  it.each([
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "169.254.169.254",
    "172.16.0.1",
    "192.168.1.1",
    "198.18.0.1",
    "224.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "fc00::1",
    "fe80::1",
    "ff02::1",
  ])("refuses %s", async (address) => {
    await expect(guard.resolve(family(address))).rejects.toThrow("not a public address");
  });

  it.each(["8.8.8.8", "1.1.1.1", "10.1.2.3", "fd00::1", "2606:4700::1111"])("lets %s through", async (address) => {
    expect(await guard.resolve(family(address))).toMatchObject([{ address }]);
  });

  it("refuses a name one of whose addresses is private, and a range that is none", async () => {
    const mixed = createOutboundGuard([], async () => [
      { address: "8.8.8.8", family: 4 },
      { address: "10.0.0.1", family: 4 },
    ]);
    await expect(mixed.resolve("mixed.example")).rejects.toThrow("10.0.0.1");
    for (const range of ["10.0.0.0/33", "10.0.0/8", "example.com", "::1/200", "10.0.0.0/8/8"]) {
      expect(() => createOutboundGuard([range])).toThrow(range);
    }
  });
});

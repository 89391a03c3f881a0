import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { request } from "undici";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { OutboundRules } from "../../../src/domain/outbound/rules.ts";
import { ForbiddenAddress } from "../../../src/handlers/outbound/guard.ts";
import { outboundOf, rules } from "../../support/outbound.ts";
import { TENANT } from "../context.ts";

const OTHER = "0196a0c1-5c00-8123-8abc-00000000000b";
const never = new AbortController().signal;

/** A listener that counts who connects. */
let inside: { port: number; connections: number; close(): void };
beforeAll(async () => {
  const server = createHttpServer((_request, response) => void response.end("hello"));
  const counted = { port: 0, connections: 0, close: () => void server.close() };
  server.on("connection", () => counted.connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  counted.port = (server.address() as AddressInfo).port;
  inside = counted;
});
afterAll(() => inside.close());
beforeEach(() => {
  inside.connections = 0;
});

type Ways = ReturnType<typeof outboundOf>;

async function get(ways: Ways, host: string, tenantId = TENANT): Promise<string> {
  const dispatcher = await ways.agentFor(tenantId);
  const answer = await request(`http://${host}:${inside.port}/`, { dispatcher });
  return answer.body.text();
}

describe("a way out", () => {
  it("that is not open ends before any connection, for calls and for brokers", async () => {
    const ways = outboundOf({
      allow: [],
      names: { "inside.example": "127.0.0.1", "mixed.example": ["8.8.8.8", "127.0.0.1"], "six.example": "::1" },
    });
    const hosts = ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "2130706433", "localhost.", "inside.example"];
    for (const host of [...hosts, "mixed.example", "six.example"]) {
      await expect(get(ways, host), host).rejects.toBeInstanceOf(ForbiddenAddress);
      const dialled = ways.dial(TENANT, { host, port: inside.port }, never);
      await expect(dialled, host).rejects.toBeInstanceOf(ForbiddenAddress);
    }
    expect(inside.connections).toBe(0);
  });

  it("leads to the address that was looked at, not to what the name says a moment later", async () => {
    let asked = 0;
    const ways = outboundOf({
      allow: ["127.0.0.1"],
      // Good the first time, and elsewhere from then on.
      resolveName: async () => [{ address: ++asked === 1 ? "127.0.0.1" : "127.0.0.2", family: 4 }],
    });
    expect(await get(ways, "rebind.example")).toBe("hello");
    expect([asked, inside.connections]).toEqual([1, 1]);
    const dialled = ways.dial(TENANT, { host: "rebind.example", port: inside.port }, never);
    await expect(dialled).rejects.toThrow("rebind.example is at 127.0.0.2");
    expect(inside.connections).toBe(1);
  });

  it("keeps a connection for the tenant's next call, and for nobody else's", async () => {
    const ways = outboundOf();
    for (let i = 0; i < 5; i++) await get(ways, "127.0.0.1");
    // The second call may come before the first has quite let go of its own.
    const kept = inside.connections;
    expect(kept).toBeLessThanOrEqual(2);
    await get(ways, "127.0.0.1", OTHER);
    expect(inside.connections).toBe(kept + 1);
  });

  it("is closed by the tenant's rules at the next call, although a connection is still kept", async () => {
    let found: OutboundRules | null = rules({ allow: ["127.0.0.1"] });
    const ways = outboundOf({ allow: [], rulesOf: async () => found });
    expect(await get(ways, "127.0.0.1")).toBe("hello");
    found = rules({ hosts: ["example.com"] });
    await expect(get(ways, "127.0.0.1")).rejects.toThrow("none of the hosts this tenant may reach");
    found = null;
    await expect(get(ways, "127.0.0.1")).rejects.toThrow("not a public address");
  });

  it("for brokers is a socket to whichever address answers, and no longer waited for than the caller does", async () => {
    const greeting = createServer((socket) => void socket.end("220 hello"));
    greeting.listen(0, "127.0.0.1");
    await once(greeting, "listening");
    const { port } = greeting.address() as AddressInfo;
    // Nobody listens at the first one.
    const ways = outboundOf({ names: { "two.example": ["127.0.0.9", "127.0.0.1"] } });
    const socket = await ways.dial(TENANT, { host: "two.example", port }, never);
    expect(String((await once(socket, "data"))[0])).toBe("220 hello");
    greeting.close();
    await expect(ways.dial(TENANT, { host: "two.example", port: 1 }, never)).rejects.toMatchObject({
      code: "ECONNREFUSED",
    });
    const stopped = AbortSignal.abort(new Error("canceled"));
    await expect(ways.dial(TENANT, { host: "127.0.0.1", port: 1 }, stopped)).rejects.toThrow("canceled");
  });
});

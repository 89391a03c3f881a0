import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { addressOf } from "../../../src/api/calls/address.ts";
import { readConfig } from "../../../src/app/config.ts";
import { sql } from "../../../src/store/database.ts";
import { call, SECRET, startTestServer, type TestServer } from "../server.ts";

const ADDRESS = sql("test_address", "select address from audit_event where request_id = $1");
let count = 0;

async function addressWith(server: TestServer, headers: Record<string, string>): Promise<string | null> {
  const requestId = `address-${++count}`;
  const key = await server.key(await server.tenant(requestId), "owner");
  const sent = { "x-request-id": requestId, ...headers };
  await call(server.url, "PUT", "/v1/calendars/here", { key, body: { weekend: [] }, headers: sent });
  return (await server.db.query<{ address: string | null }>(ADDRESS, [requestId]))[0]!.address;
}

describe.each([
  [undefined, "203.0.113.7", "127.0.0.1"],
  [1, "198.51.100.1, 203.0.113.7", "203.0.113.7"],
  [2, "198.51.100.1, 203.0.113.7", "198.51.100.1"],
  [["127.0.0.1"], "198.51.100.1, 203.0.113.7", "203.0.113.7"],
  [["127.0.0.1", "203.0.113.0/24"], "198.51.100.1, 203.0.113.7", "198.51.100.1"],
  [["10.0.0.0/8"], "203.0.113.7", "127.0.0.1"],
  [1, "::ffff:203.0.113.7", "203.0.113.7"],
  [1, "2001:DB8::0:1", "2001:db8::1"],
  [1, "203.0.113.7:4711", "203.0.113.7"],
  [1, "'; drop table", "127.0.0.1"],
])("behind the proxies %j", (trustProxy, forwarded, shown) => {
  let server: TestServer;
  beforeAll(async () => {
    const trust = trustProxy === undefined ? {} : { trustProxy };
    server = await startTestServer({ config: { secret: SECRET, closeGraceMs: 2000, ...trust } });
  });
  afterAll(() => server?.close());

  it(`X-Forwarded-For: ${forwarded} is a caller at ${shown}`, async () => {
    expect(await addressWith(server, { "x-forwarded-for": forwarded })).toBe(shown);
  });
});

it("an IPv4 address in the clothes of IPv6 is shown as IPv4, and a zone is no part of an address", () => {
  const at = (ip: string | undefined, remoteAddress?: string) => addressOf({ ip, socket: { remoteAddress } } as never);
  expect(at("::ffff:127.0.0.1")).toBe("127.0.0.1");
  expect(at("::ffff:7f00:1")).toBe("127.0.0.1");
  expect(at("fe80::1%eth0")).toBe("fe80::1");
  expect(at("::1")).toBe("::1");
  expect(at(undefined, undefined)).toBeNull();
});

it("PUNCTUAL_TRUST_PROXY is a number of proxies, or their addresses and ranges", () => {
  expect(readConfig({}).PUNCTUAL_TRUST_PROXY).toBeUndefined();
  expect(readConfig({ PUNCTUAL_TRUST_PROXY: "2" }).PUNCTUAL_TRUST_PROXY).toBe(2);
  expect(readConfig({ PUNCTUAL_TRUST_PROXY: "10.0.0.0/8, ::1" }).PUNCTUAL_TRUST_PROXY).toEqual(["10.0.0.0/8", "::1"]);
  for (const text of ["true", "0", "10.0.0.0/33", "proxy.example.com"]) {
    expect(() => readConfig({ PUNCTUAL_TRUST_PROXY: text }), text).toThrow(/PUNCTUAL_TRUST_PROXY: found/);
  }
});

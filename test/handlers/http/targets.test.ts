import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { httpJobSchema } from "../../../src/domain/jobs/http.ts";
import { outboundOf } from "../../support/outbound.ts";
import { trustTestCertificate } from "../../support/tls.ts";
import { attempt, HERE, openTarget, reset, type Target } from "./scene.ts";

/** B55: `outside` may be reached, and nothing else on this machine; `inside` listens where nobody may go. */
let outside: Target;
let inside: Target;
let secure: Target;
beforeAll(async () => {
  trustTestCertificate();
  outside = await openTarget();
  inside = await openTarget({ host: "127.0.0.1", port: outside.port });
  secure = await openTarget({ tls: true });
});
afterAll(async () => {
  for (const target of [outside, inside, secure]) await target.close();
});
beforeEach(() => {
  for (const target of [outside, inside, secure]) reset(target);
});

const blocked = { kind: "failed", transient: false, code: "target-blocked" };
const follow = { redirects: { policy: "follow", max: 5 } } as const;
const NAMES = {
  "loopback.example": "127.0.0.1",
  "metadata.example": "169.254.169.254",
  "mapped.example": "::ffff:127.0.0.1",
  "private.example": "10.0.0.1",
  "shared.example": "100.64.0.1",
  "unique.example": "fd00::1",
  "both.example": ["8.8.8.8", "127.0.0.1"],
  "target.example": HERE,
  "other.example": HERE,
};
const LITERALS = [
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:169.254.169.254]",
  "localhost.",
  "169.254.169.254",
  "10.0.0.1",
  "100.64.0.1",
  "[fd00::1]",
];
const HOSTS = [...LITERALS, ...Object.keys(NAMES).slice(0, 7)];

describe("a target that is not public (B55)", () => {
  it.each(HOSTS)("%s is blocked for good, and nothing is connected to", async (host) => {
    const { outcome } = await attempt({ url: `http://${host}:${inside.port}/` }, { names: NAMES });
    expect(outcome).toMatchObject(blocked);
    expect(inside.connections).toBe(0);
  });

  it.each(HOSTS.flatMap((host) => [[302, host] as const, [307, host] as const]))(
    "is as blocked after a redirect (%i) to %s",
    async (status, host) => {
      outside.answer = (response) =>
        void response.writeHead(status, { location: `http://${host}:${inside.port}/latest/meta-data/` }).end();
      const { outcome } = await attempt({ url: outside.url, ...follow }, { names: NAMES });
      expect(outcome).toMatchObject(blocked);
      expect([outside.calls.length, inside.connections]).toEqual([1, 0]);
    },
  );

  it.each(["file:///etc/passwd", "ftp://example.com/", "data:text/plain,x", "http://user:pass@target.example/"])(
    "nor is a redirect to %s followed",
    async (location) => {
      outside.answer = (response) => void response.writeHead(302, { location }).end();
      expect((await attempt({ url: outside.url, ...follow }, { names: NAMES })).outcome).toMatchObject(blocked);
    },
  );

  it.each([
    "file:///etc/passwd",
    "ftp://example.com/",
    "http://user:pass@example.com/",
    "http://{{payload.host}}/",
    "http://example.com:{{payload.port}}/",
    "http://example.com\\@evil.example/",
    "http:// example.com/",
    "http://example.com/#{{payload.x}}",
    "https://example.com/{{secrets.x}}",
    "example.com/x",
  ])("%s is no URL of a job", (url) => {
    expect(httpJobSchema.safeParse({ kind: "http", url }).success).toBe(false);
  });

  it("is looked up once, and that address is dialled: what the name says a moment later is not heard", async () => {
    const asked: string[] = [];
    const resolveName = async (name: string) => {
      asked.push(name);
      return [{ address: asked.length === 1 ? HERE : "127.0.0.1", family: 4 as const }];
    };
    const outbound = outboundOf({ allow: [HERE], resolveName });
    const url = `http://rebind.example:${outside.port}/`;
    expect((await attempt({ url }, { tools: { outbound } })).outcome.kind).toBe("succeeded");
    expect([asked, outside.connections, inside.connections]).toEqual([["rebind.example"], 1, 0]);
  });

  it("is looked up anew in every attempt, and at every redirect", async () => {
    const said: string[] = [HERE, "127.0.0.1"];
    const outbound = outboundOf({
      allow: [HERE],
      resolveName: async () => [{ address: said.shift()!, family: 4 as const }],
    });
    outside.answer = (response) => void response.writeHead(302, { location: "/again", connection: "close" }).end();
    const url = `http://rebind.example:${outside.port}/`;
    expect((await attempt({ url, ...follow }, { tools: { outbound } })).outcome).toMatchObject(blocked);
    expect([outside.connections, inside.connections, said]).toEqual([1, 0, []]);
  });
});

describe("a redirect that is followed", () => {
  const hopping = (status: number, location: string) => {
    outside.answer = (response, { path }) =>
      path === "/a" ? void response.writeHead(status, { location }).end() : void response.end("there");
  };
  const job = (change = {}) => ({ url: `${outside.url}/a`, ...follow, ...change });

  it.each([
    [301, "POST", "GET"],
    [302, "POST", "GET"],
    [303, "POST", "GET"],
    [303, "PUT", "GET"],
    [301, "PUT", "PUT"],
    [302, "DELETE", "DELETE"],
    [307, "POST", "POST"],
    [308, "POST", "POST"],
    [302, "GET", "GET"],
    [303, "HEAD", "HEAD"],
  ] as const)("%i turns %s into %s, as fetch does", async (status, method, expected) => {
    hopping(status, "b?x=1");
    const { outcome } = await attempt(job({ method }), { payload: { n: 1 } });
    expect(outcome.kind).toBe("succeeded");
    const [first, second] = outside.calls;
    expect([second!.path, second!.method]).toEqual(["/b?x=1", expected]);
    const keeps = method === expected;
    expect(second!.body).toBe(keeps ? first!.body : "");
    expect(second!.headers["content-type"]).toBe(keeps ? first!.headers["content-type"] : undefined);
    expect(second!.headers["idempotency-key"]).toBe(first!.headers["idempotency-key"]);
  });

  it("to another origin takes no secret along, nor back again", async () => {
    const other = `http://other.example:${outside.port}`;
    outside.answer = (response, { path }) => {
      const next: Record<string, string> = { "/a": "/b", "/b": `${other}/c`, "/c": `${outside.url}/d` };
      const location = next[path];
      if (location === undefined) response.end("there");
      else response.writeHead(307, { location }).end();
    };
    const headers = { authorization: "Bearer {{payload.t}}", cookie: "c={{payload.t}}", "x-mine": "1", accept: "*/*" };
    await attempt(job({ headers }), { payload: { t: "token" }, names: NAMES });
    const seen = outside.calls.map(({ path, headers: found }) => [
      path,
      ["authorization", "cookie", "x-mine", "accept"].filter((name) => found[name] !== undefined),
    ]);
    expect(seen).toEqual([
      ["/a", ["authorization", "cookie", "x-mine", "accept"]],
      ["/b", ["authorization", "cookie", "x-mine", "accept"]],
      ["/c", ["accept"]],
      ["/d", ["accept"]],
    ]);
  });

  it("never takes a callback's token elsewhere", async () => {
    hopping(307, `http://other.example:${outside.port}/b`);
    const { outcome } = await attempt(job({ completion: "callback" }), { names: NAMES });
    expect(outcome).toMatchObject({ transient: false, code: "http-redirect" });
    expect(outside.calls).toHaveLength(1);
  });

  it("goes round in circles only so often", async () => {
    outside.answer = (response) => void response.writeHead(302, { location: "/a" }).end();
    const { outcome } = await attempt(job({ redirects: { policy: "follow", max: 2 } }));
    expect(outcome).toMatchObject({ transient: false, code: "http-redirect" });
    expect(outside.calls).toHaveLength(3);
  });

  it("without a Location, or with one that is no URL, is a failure", async () => {
    outside.answer = (response) => void response.writeHead(302).end("nowhere");
    expect((await attempt(job())).outcome).toMatchObject({ transient: false, code: "http-302" });
    outside.answer = (response) => void response.writeHead(302, { location: "http://[" }).end();
    expect((await attempt(job())).outcome).toMatchObject({ transient: false, code: "http-redirect" });
  });

  it("from https to http is not", async () => {
    const url = `https://target.example:${secure.port}/`;
    expect((await attempt({ url, ...follow }, { names: NAMES })).outcome.kind).toBe("succeeded");
    const location = `http://target.example:${outside.port}/`;
    secure.answer = (response) => void response.writeHead(302, { location }).end();
    const { outcome } = await attempt({ url, ...follow }, { names: NAMES });
    expect(outcome).toMatchObject({ transient: false, code: "http-redirect" });
    expect((outcome as { message: string }).message).toContain("from https to http");
    expect(outside.connections).toBe(0);
  });
});

it("a target that cannot prove its name is tried again, and gets nothing", async () => {
  const url = `https://stranger.example:${secure.port}/`;
  const { outcome } = await attempt({ url }, { names: { "stranger.example": HERE } });
  expect(outcome).toMatchObject({ transient: true, code: "http-tls" });
  expect(secure.calls).toEqual([]);
});

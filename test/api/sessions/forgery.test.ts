import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, SECRET, startTestServer, type TestServer } from "../server.ts";
import { type Browser, cookieOf, signIn } from "./browser.ts";

const body = { rule: { kind: "interval", everyMs: 60_000, anchorAt: 0 } };
let server: TestServer;
let key: string;
let browser: Browser;
beforeAll(async () => {
  server = await startTestServer();
  key = await server.key(await server.tenant("acme"), "owner");
  browser = await signIn(server.url, key);
});
afterAll(() => server?.close());

/** A call by cookie that may change something, with these headers beside it. */
const post = (headers: Record<string, string>) =>
  call(server.url, "POST", "/v1/schedules/preview", { headers: { cookie: browser.cookie, ...headers }, body });
const codeOf = async (headers: Record<string, string>) => {
  const { status, body } = await post(headers);
  return status === 200 ? "taken" : `${status} ${body.code}`;
};

describe("a call by cookie that may change something", () => {
  it("is taken from a page of ours with the session's token", async () => {
    const token = { "x-csrf-token": browser.csrf };
    expect(await codeOf({ ...token, origin: server.url })).toBe("taken");
    expect(await codeOf({ ...token, "sec-fetch-site": "same-origin" })).toBe("taken");
    expect(await codeOf({ ...token, origin: server.url, "sec-fetch-site": "same-origin" })).toBe("taken");
  });

  it("is refused without the token, with a wrong one, and with that of another session", async () => {
    const other = await signIn(server.url, key);
    expect(other.csrf).not.toBe(browser.csrf);
    const wrong = [
      undefined,
      "",
      "x",
      other.csrf,
      `${browser.csrf}A`,
      browser.csrf.slice(0, -2),
      browser.csrf.toUpperCase(),
    ];
    for (const token of wrong) {
      const headers = { origin: server.url, ...(token === undefined ? {} : { "x-csrf-token": token }) };
      expect([token, await codeOf(headers)]).toEqual([token, "403 csrf-token"]);
    }
  });

  it("is refused from everywhere else, also with the token", async () => {
    const token = { "x-csrf-token": browser.csrf };
    const { host, port } = new URL(server.url);
    const elsewhere: Record<string, string>[] = [
      {},
      { origin: "null" },
      { origin: "https://evil.example" },
      { origin: `http://${host}.evil.example` },
      { origin: `https://${host}` },
      { origin: `http://127.0.0.1:${Number(port) + 1}` },
      { origin: `${server.url}/` },
      { "sec-fetch-site": "cross-site" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "none" },
      { "sec-fetch-site": "cross-site", origin: server.url },
      { "sec-fetch-site": "same-origin", origin: "https://evil.example" },
    ];
    for (const headers of elsewhere) {
      expect([headers, await codeOf({ ...token, ...headers })]).toEqual([headers, "403 cross-origin"]);
    }
  });

  it("is asked for its token by every method but GET and HEAD", async () => {
    for (const [method, path] of [
      ["POST", "/v1/runs"],
      ["PUT", "/v1/calendars/x"],
      ["PATCH", "/v1/schedules/x"],
      ["DELETE", "/v1/schedules/x"],
      ["DELETE", "/v1/session"],
    ] as const) {
      const headers = { cookie: browser.cookie, origin: server.url };
      const answer = await call(server.url, method, path, { headers });
      expect([method, answer.status, answer.body.code]).toEqual([method, 403, "csrf-token"]);
    }
    expect((await call(server.url, "GET", "/v1/runs", { headers: { cookie: browser.cookie } })).status).toBe(200);
  });

  it("behind a proxy comes from the public address, whatever the proxy calls us", async () => {
    const publicUrl = "https://punctual.example/";
    const proxied = await startTestServer({ config: { secret: SECRET, closeGraceMs: 2_000, publicUrl } });
    try {
      const own = await proxied.key(await proxied.tenant("acme"), "owner");
      const begun = await call(proxied.url, "POST", "/v1/session", { key: own });
      const at = async (origin: string) => {
        const headers = { cookie: cookieOf(begun), "x-csrf-token": String(begun.body.csrfToken), origin };
        return (await call(proxied.url, "POST", "/v1/schedules/preview", { headers, body })).status;
      };
      expect(await at("https://punctual.example")).toBe(200);
      expect(await at("http://punctual.example")).toBe(403);
      expect(await at("https://punctual.example.evil.example")).toBe(403);
    } finally {
      await proxied.close();
    }
  });
});

describe("who could make a browser call", () => {
  it("needs no token where it has the credential itself", async () => {
    const options = { key, body, headers: { origin: "https://elsewhere.example", "sec-fetch-site": "cross-site" } };
    expect((await call(server.url, "POST", "/v1/schedules/preview", options)).status).toBe(200);
  });

  it("does not profit from a password that the browser remembers and sends along from every site", async () => {
    const authorization = `Basic ${Buffer.from(`any:${key}`).toString("base64")}`;
    const asked = (headers: Record<string, string>) =>
      call(server.url, "POST", "/v1/schedules/preview", { headers: { authorization, ...headers }, body });
    expect((await asked({})).status).toBe(200);
    expect((await asked({ origin: server.url })).status).toBe(200);
    for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
      expect((await asked(headers)).body.code).toBe("cross-origin");
    }
  });

  it("cannot sign people in as itself", async () => {
    const headers = { origin: "https://evil.example" };
    const begun = await call(server.url, "POST", "/v1/session", { key, headers });
    expect([begun.status, begun.body.code, begun.headers.getSetCookie()]).toEqual([403, "cross-origin", []]);
  });
});

describe("the page to sign in", () => {
  const form = (fields: Record<string, string>, headers: Record<string, string> = { origin: server.url }) =>
    call(server.url, "POST", "/sign-in", {
      body: new URLSearchParams(fields).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });

  it("is a plain form without a script, in nobody's frame", async () => {
    const page = await call(server.url, "GET", "/sign-in?to=/queues");
    expect(page.status).toBe(200);
    expect(page.text).not.toMatch(/<script|javascript:| on\w+=/i);
    expect(page.text).toContain('name="to" value="/queues"');
    const policy = page.headers.get("content-security-policy");
    for (const part of ["default-src 'none'", "frame-ancestors 'none'", "form-action 'self'"]) {
      expect(policy).toContain(part);
    }
    expect(page.headers.get("cache-control")).toBe("no-store");
  });

  it("takes a key, and leads to where its visitor wanted", async () => {
    const entered = await form({ key: ` ${key} `, to: "/queues?tenant=acme" });
    expect([entered.status, entered.headers.get("location")]).toEqual([303, "/queues?tenant=acme"]);
    const headers = { cookie: cookieOf(entered) };
    expect((await call(server.url, "GET", "/v1/session", { headers })).status).toBe(200);
  });

  it("leads to nobody else's page, and shows nothing that its address brings along", async () => {
    for (const to of [
      "//evil.example",
      "/\\evil.example",
      "https://evil.example",
      "/\t/evil.example",
      "javascript:x",
      "",
    ]) {
      expect([to, (await form({ key, to })).headers.get("location")]).toEqual([to, "/"]);
    }
    const hostile = `/"><script>alert(1)</script>`;
    const page = await call(server.url, "GET", `/sign-in?to=${encodeURIComponent(hostile)}`);
    expect(page.text).not.toContain("<script");
  });

  it("asks again after a key that opens nothing, and is not filled in by other sites", async () => {
    const refused = await form({ key: "pk_0", to: "/queues" });
    expect([refused.status, refused.headers.getSetCookie()]).toEqual([401, []]);
    expect(refused.text).toContain('role="alert"');
    expect(refused.text).not.toContain("pk_0");
    for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }, {}]) {
      expect((await form({ key, to: "/" }, headers)).status).toBe(403);
    }
  });

  it("reads no form that is larger than one with a key, and says so", async () => {
    const headers = { "content-type": "application/x-www-form-urlencoded", origin: server.url };
    const many = await call(server.url, "POST", "/sign-in", { headers, body: "&".repeat(2_000) });
    expect(many.status).toBe(401);
    const long = await call(server.url, "POST", "/sign-in", { headers, body: "k".repeat(5_000) });
    expect([long.status, long.body.code, long.body.detail]).toEqual([
      413,
      "body-too-large",
      "The body may have at most 4,096 bytes",
    ]);
    const packed = { ...headers, "content-encoding": "gzip" };
    expect((await call(server.url, "POST", "/sign-in", { headers: packed, body: "no gzip" })).status).toBe(415);
  });

  it("signs out by a form as well", async () => {
    const asked = await call(server.url, "GET", "/sign-out");
    expect(asked.text).not.toMatch(/<script/i);
    const out = await call(server.url, "POST", "/sign-out", { headers: { origin: server.url } });
    expect([out.status, out.headers.get("location")]).toEqual([303, "/sign-in"]);
    expect(out.headers.getSetCookie()[0]).toMatch(/Max-Age=0/);
    const foreign = await call(server.url, "POST", "/sign-out", { headers: { origin: "https://evil.example" } });
    expect([foreign.status, foreign.headers.getSetCookie()]).toEqual([403, []]);
  });
});

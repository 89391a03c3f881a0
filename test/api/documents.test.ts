import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mintKey } from "../../src/api/keys.ts";
import { PROBLEMS } from "../../src/api/problems/catalogue.ts";
import { ROUTES } from "../../src/api/table.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createDatabase } from "../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.close());

type OpenApi = {
  openapi: string;
  paths: Record<
    string,
    Record<string, { operationId: string; responses: Record<string, unknown>; requestBody?: unknown }>
  >;
  components: { schemas: Record<string, unknown> };
};

describe("the OpenAPI document", () => {
  it("is 3.1, names every route once, and its schemas compile", async () => {
    const document = (await call(server.url, "GET", "/openapi.json")).body as unknown as OpenApi;
    expect(document.openapi).toBe("3.1.0");
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ route: `${method} ${path}`, ...operation })),
    );
    expect(operations.map((one) => one.route).sort()).toEqual(
      ROUTES.map((route) => `${route.method} ${route.path}`).sort(),
    );
    expect(new Set(operations.map((one) => one.operationId)).size).toBe(operations.length);
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: "root", ...document });
    for (const name of Object.keys(document.components.schemas)) {
      expect(() => ajv.compile({ $ref: `root#/components/schemas/${name}` }), name).not.toThrow();
    }
  });

  it("says which problems a route is known for", async () => {
    const document = (await call(server.url, "GET", "/openapi.json")).body as unknown as OpenApi;
    const create = document.paths["/v1/schedules"]!.post!;
    expect(Object.keys(create.responses)).toEqual(
      expect.arrayContaining(["201", "400", "401", "403", "409", "413", "415"]),
    );
    expect(JSON.stringify(create.responses["409"])).toContain("request-key-reused");
  });

  it("has a reference page that loads nothing from elsewhere", async () => {
    const page = await call(server.url, "GET", "/docs");
    expect(page.status).toBe(200);
    const sources = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map((match) => match[1]!);
    expect(sources.length).toBeGreaterThanOrEqual(4);
    for (const source of sources) {
      expect(source).toMatch(/^\/docs\//);
      expect((await fetch(server.url + source)).status, source).toBe(200);
    }
  });
});

describe("docs/errors.md", () => {
  it("lists every code with its status, meaning, whether to retry and what to do, and nothing else", () => {
    const text = readFileSync(new URL("../../docs/errors.md", import.meta.url), "utf8");
    const rows = [...text.matchAll(/^\| `([a-z-]+)` \| (\d{3}) \| ([^|]+) \| (yes|no) \| ([^|]+) \|$/gm)].map((row) =>
      row.slice(1, 6).map((cell) => cell.trim()),
    );
    const catalogue = Object.entries(PROBLEMS).map(([code, entry]) => [
      code,
      String(entry.status),
      entry.title,
      entry.retryable ? "yes" : "no",
      entry.remedy,
    ]);
    expect(rows).toEqual(catalogue);
  });
});

describe("a database that does not answer", () => {
  it("makes calls 503 and retryable, and says nothing of itself", async () => {
    const shared = { clock: systemClock, log: silentLog };
    const db = createDatabase({
      url: "postgres://nobody@127.0.0.1:1/none",
      maxConnections: 1,
      applicationName: "test",
      ...shared,
    });
    const cut = await startTestServer({ db });
    const answer = await call(cut.url, "GET", "/v1/me", { key: mintKey().key });
    expect([answer.status, answer.body.code, answer.body.retryable]).toEqual([503, "unavailable", true]);
    expect(answer.text).not.toMatch(/ECONN|127\.0\.0\.1:1\b/);
    await db.close();
    await cut.close();
  });
});

describe("pages and probes", () => {
  it("answer without a key", async () => {
    for (const path of ["/", "/docs", "/docs/errors", "/openapi.json", "/healthz", "/readyz", "/metrics"]) {
      expect((await call(server.url, "GET", path)).status, path).toBe(200);
    }
    expect((await call(server.url, "GET", "/metrics")).text).toContain("punctual_http_seconds");
  });

  it("say what would be needed for the board where there is no Redis, and call it no failure", async () => {
    const failures: unknown[] = [];
    const log = { ...silentLog, error: (...line: unknown[]) => void failures.push(line) } as never;
    const without = await startTestServer({ log });
    const answer = await call(without.url, "GET", "/queues");
    expect([answer.status, answer.body.code, answer.body.retryable]).toEqual([503, "no-redis", false]);
    expect(answer.body.detail).toContain("REDIS_URL");
    const accept = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    const page = await call(without.url, "GET", "/queues", { headers: { accept } });
    expect([page.status, page.headers.get("content-type")]).toEqual([503, "text/html; charset=utf-8"]);
    expect(page.text).toContain("REDIS_URL");
    expect(failures).toEqual([]);
    await without.close();
  });

  it("say what to do about each error", async () => {
    const page = await call(server.url, "GET", "/docs/errors");
    expect(page.text).toContain("<td>Keep large data elsewhere and put a reference into the payload.</td>");
    expect(page.text).toContain("Send <code>Authorization: Bearer pk_…</code>, or a token of the trusted issuer.");
  });

  it("name the type of a problem by an address that explains it", async () => {
    const { body } = await call(server.url, "GET", "/v1/nothing");
    const page = await fetch(String(body.type));
    expect(await page.text()).toContain(`id="${String(body.code)}"`);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { Route } from "../../../src/api/route.ts";
import { ROUTES } from "../../../src/api/table.ts";
import { newMasterKey } from "../../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../../src/app/secrets/master-keys.ts";
import { readId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { type Answer, call, startTestServer, type TestServer } from "../server.ts";
import { signIn } from "../sessions/browser.ts";
import { buildEstate, type Estate, workOperations } from "./estate.ts";
import { bodiesNaming, bodyOf, nameOf, namesSomething, pathsOf, queriesOf } from "./samples.ts";

/**
 * Two tenants with one of everything. Whatever one asks for that is the other's, by any route, in a path, a query or a body, it is not
 * there; no answer holds a word of the other's, and nothing of the other's changes. The routes are those of the table: a new
 * one is walked too, or the test says what it does not know of it.
 */
let server: TestServer;
let mine: Estate;
let theirs: Estate;
let admin: string;
/** Of their lists, where they go on. */
const cursors = new Map<string, string>();
/** Texts that name something of theirs, in any form. */
let traces: string[];

const ROLES = ["viewer", "operator", "owner", "worker"] as const;
/** A name of the caller's own is written there, also where another tenant has the same. */
const WRITES_OWN_NAME = new Set(["PUT /v1/calendars/{calendar}", "PUT /v1/email-templates/{template}"]);

/** Calendars and templates have the mark in their names; deliveries are numbers, and stand behind their webhook. */
const PLAIN_THINGS = new Set(["calendar", "template", "delivery"]);

beforeAll(async () => {
  server = await startTestServer({}, 0, 4, createMasterKeys(newMasterKey("test")));
  mine = await buildEstate(server, "canary-mine");
  theirs = await buildEstate(server, "canary-theirs");
  admin = await server.key(await server.tenant("platform"), "admin");
  for (const route of ROUTES) {
    if (!("after" in route.query.shape)) continue;
    for (const path of route.roles === "everybody" ? [] : pathsOf(route, theirs)) {
      const key = route.roles.includes("owner") ? theirs.keys.owner : admin;
      const page = await call(server.url, "GET", `${path}?limit=1`, { key });
      if (typeof page.body.next === "string") cursors.set(nameOf(route), page.body.next);
    }
  }
  const ids = Object.entries(theirs.things).flatMap(([kind, refs]) => (PLAIN_THINGS.has(kind) ? [] : refs));
  const uuids = ids.flatMap((id) =>
    (["sch", "run", "ten", "key", "op", "eff", "sgk", "whk"] as const).flatMap((kind) => readId(kind, id) ?? []),
  );
  traces = [theirs.mark, ...ids, ...uuids];
});
afterAll(() => server?.close());

const unescaped = (text: string) => text.replaceAll(/%3a/gi, ":");

/** What an answer holds of theirs, beyond what the request itself said. */
function leaked(answer: Answer, asked: string): string[] {
  const said = unescaped(asked);
  const text = unescaped(
    `${answer.text}\n${[...answer.headers].map(([name, value]) => `${name}: ${value}`).join("\n")}`,
  );
  // The mark stands in what was asked for: then every word that holds it has to be one that was asked for.
  const words = text.match(/[\w:.-]*canary-theirs[\w.-]*/g) ?? [];
  return [
    ...words.filter((word) => !said.includes(word.replace(/[.]$/, "")) && !said.includes(word.replace(/^key:/, ""))),
    ...traces.filter((trace) => trace !== theirs.mark && text.includes(trace) && !said.includes(trace)),
  ];
}

/** Every row that names something of theirs, but for when a key was used last. */
async function theirRows(): Promise<Map<string, string[]>> {
  const tables = await server.db.query<{ name: string }>(
    sql(
      "test_tables",
      `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = 'public' and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
    ),
  );
  const uuids = traces.filter((trace) => /^[0-9a-f]{8}-/.test(trace));
  const rows = new Map<string, string[]>();
  for (const { name } of tables) {
    const found = await server.db.query<{ row: string }>(
      sql(
        `test_rows_of_${name}`,
        `select (to_jsonb(t) - 'last_used_at')::text as row from "${name}" t
          where t::text like any (array(select '%' || one || '%' from unnest($1::text[]) one)) order by 1`,
      ),
      [uuids],
    );
    rows.set(
      name,
      found.map(({ row }) => row),
    );
  }
  return rows;
}

async function changesNothing(work: () => Promise<void>): Promise<void> {
  const before = await theirRows();
  expect([...before.values()].flat().length).toBeGreaterThan(40);
  await work();
  expect(await theirRows()).toEqual(before);
}

type Asked = { route: Route; path: string; key?: string; body?: unknown; headers?: Record<string, string> };

async function ask({ route, path, key, body, headers = {} }: Asked): Promise<Answer> {
  const options = { key, headers, ...(body === undefined ? {} : { body }) };
  const answer = await call(server.url, route.method.toUpperCase(), path, options);
  const asked = `${path} ${JSON.stringify(body ?? "")} ${JSON.stringify(headers)}`;
  expect([nameOf(route), path, answer.status, leaked(answer, asked)]).toEqual([nameOf(route), path, answer.status, []]);
  expect([nameOf(route), path, answer.status < 500 || answer.status === 503]).toEqual([nameOf(route), path, true]);
  return answer;
}

const routesNaming = () =>
  ROUTES.filter(
    // A link to a result is its own credential, and has tests of its own.
    (route) => namesSomething(route) && route.roles !== "everybody" && !WRITES_OWN_NAME.has(nameOf(route)),
  );

describe("what is another tenant's", () => {
  it("is there for the tenant itself, with its mark on it: else nothing below would say anything", async () => {
    const marked = new Set<string>();
    for (const route of ROUTES) {
      if (route.method !== "get" || route.roles === "everybody" || !namesSomething(route)) continue;
      let best = 999;
      for (const path of pathsOf(route, theirs)) {
        const key = route.roles.includes("owner") ? theirs.keys.owner : admin;
        const answer = await call(server.url, "GET", path, { key });
        best = Math.min(best, answer.status);
        if (answer.text.includes(theirs.mark)) marked.add(nameOf(route));
      }
      expect([nameOf(route), best]).toEqual([nameOf(route), 200]);
    }
    expect(marked.size).toBeGreaterThan(10);
  });

  it("is not there by its id or name, for any role, and stays as it is", async () => {
    await changesNothing(async () => {
      for (const route of routesNaming()) {
        for (const path of pathsOf(route, theirs)) {
          for (const role of ROLES) {
            const answer = await ask({ route, path, key: mine.keys[role], body: bodyOf(route) });
            expect([nameOf(route), path, role, answer.status]).toEqual([
              nameOf(route),
              path,
              role,
              answer.status === 403 ? 403 : 404,
            ]);
          }
        }
      }
    });
  });

  it("is nobody's without a credential that is good", async () => {
    await changesNothing(async () => {
      for (const route of routesNaming()) {
        const [path = ""] = pathsOf(route, theirs);
        for (const key of [undefined, mine.keys.expired, mine.keys.revoked, theirs.keys.expired, theirs.keys.revoked]) {
          const answer = await ask({ route, path, ...(key === undefined ? {} : { key }), body: bodyOf(route) });
          expect([nameOf(route), answer.status]).toEqual([nameOf(route), 401]);
        }
      }
    });
  });

  it("is not there for an admin either who has not said for whom", async () => {
    await changesNothing(async () => {
      for (const route of routesNaming()) {
        // Tenants are the platform's own business.
        if (route.path.startsWith("/v1/tenants/")) continue;
        for (const path of pathsOf(route, theirs)) {
          const answer = await ask({ route, path, key: admin, body: bodyOf(route) });
          expect([nameOf(route), path, answer.status]).toEqual([nameOf(route), path, 404]);
        }
      }
    });
  });

  it("is not there by Punctual-Tenant for anybody but an admin", async () => {
    const headers = { "punctual-tenant": theirs.tenant };
    await changesNothing(async () => {
      for (const route of ROUTES) {
        if (route.roles === "everybody") continue;
        const [path = ""] = pathsOf(route, theirs);
        for (const role of ROLES) {
          const answer = await ask({ route, path, key: mine.keys[role], headers, body: bodyOf(route) });
          expect([nameOf(route), role, answer.status]).toEqual([nameOf(route), role, 403]);
        }
      }
    });
  });

  it("is not there by a session of one's own, whatever tenant it is asked for", async () => {
    const { headers } = await signIn(server.url, mine.keys.owner);
    await changesNothing(async () => {
      for (const route of routesNaming()) {
        const [path = ""] = pathsOf(route, theirs);
        const answer = await ask({ route, path, headers, body: bodyOf(route) });
        expect([nameOf(route), answer.status === 403 || answer.status === 404]).toEqual([nameOf(route), true]);
      }
    });
  });

  it("is in no answer to a query that names it: filters, request keys, cursors", async () => {
    let queries = 0;
    await changesNothing(async () => {
      for (const route of ROUTES) {
        if (route.method !== "get") continue;
        const [path = ""] = pathsOf(route, mine);
        for (const query of queriesOf(route, theirs, cursors)) {
          for (const role of ["viewer", "owner"] as const) {
            await ask({ route, path: `${path}?${query}`, key: mine.keys[role] });
          }
          queries++;
        }
      }
    });
    expect(queries).toBeGreaterThan(30);
  });

  it("is not taken from fields of a body, and the refusal says nothing of it", async () => {
    const tried: string[] = [];
    await changesNothing(async () => {
      for (const route of ROUTES) {
        const [path = ""] = pathsOf(route, mine);
        for (const { field, body } of bodiesNaming(route, theirs)) {
          const ofWorkers = route.roles.includes("worker");
          const answer = await ask({ route, path, key: mine.keys[ofWorkers ? "worker" : "owner"], body });
          tried.push(`${nameOf(route)} ${field}`);
          // What is to be used has to be there; what only filters finds nothing, as with an id of nobody.
          if (!field.startsWith("filter.")) expect(answer.status, tried.at(-1)).toBe(ofWorkers ? 404 : 400);
          else if (body.dryRun !== undefined)
            await ask({ route, path, key: mine.keys.owner, body: { ...body, dryRun: false } });
        }
      }
      await workOperations(server);
    });
    expect(tried.length).toBeGreaterThan(8);
  });

  it("is in no answer to what is one's own", async () => {
    await changesNothing(async () => {
      for (const route of ROUTES) {
        if (route.method !== "get" || route.roles === "everybody") continue;
        for (const path of pathsOf(route, mine)) await ask({ route, path, key: mine.keys.owner });
      }
      for (const route of ROUTES) {
        if (route.method === "get" && route.roles === "everybody" && !namesSomething(route))
          await ask({ route, path: route.path });
      }
    });
  });

  it("has request keys of its own: the same ones in two tenants make two things", async () => {
    await changesNothing(async () => {
      for (const route of ROUTES) {
        if (route.headers === undefined || !("idempotency-key" in route.headers.shape)) continue;
        const [path = ""] = pathsOf(route, mine);
        const headers = { "idempotency-key": theirs.requestKey };
        const answer = await ask({ route, path, key: mine.keys.owner, body: bodyOf(route), headers });
        expect([nameOf(route), answer.body.code]).not.toEqual([nameOf(route), "request-key-reused"]);
        expect(answer.headers.get("idempotency-replayed")).toBeNull();
      }
    });
  });

  it("may have the name of something of one's own", async () => {
    const [calendar = ""] = theirs.things.calendar!;
    await changesNothing(async () => {
      const body = { zone: "Etc/UTC", weekend: [], dates: [{ date: "2031-01-01", name: "a day" }] };
      const path = `/v1/calendars/${calendar}`;
      const made = await call(server.url, "PUT", path, { key: mine.keys.owner, body });
      expect(made.status).toBeLessThan(300);
      const route = ROUTES.find((one) => nameOf(one) === "GET /v1/calendars/{calendar}")!;
      expect((await ask({ route, path, key: mine.keys.owner })).body.dates).toEqual(body.dates);
      expect((await call(server.url, "DELETE", path, { key: mine.keys.owner })).status).toBe(200);
    });
  });

  it("has results that no link to other results opens", async () => {
    await changesNothing(async () => {
      const route = ROUTES.find((one) => one.path === "/v1/objects/{run}")!;
      for (const path of pathsOf(route, theirs)) {
        const answer = await ask({ route, path: `${path}?${new URLSearchParams(mine.link)}`, key: mine.keys.owner });
        expect([403, 404]).toContain(answer.status);
      }
    });
  });
});

describe("a route of which the tests know too little", () => {
  const [route] = ROUTES.filter((one) => one.path === "/v1/runs/{run}" && one.method === "get");

  it("is named, with what they do not know of it", () => {
    const novel = { ...route!, path: "/v1/novelties/{novelty}", query: z.strictObject({ noveltyId: z.string() }) };
    expect(() => pathsOf(novel, theirs)).toThrow("no sample for parameter novelty of GET /v1/novelties/{novelty}");
    expect(() => queriesOf(novel, theirs, cursors)).toThrow(/no sample for query parameter noveltyId of GET/);
    const body = z.strictObject({ within: z.strictObject({ noveltyIds: z.array(z.string()) }) });
    expect(() => bodiesNaming({ ...novel, body }, theirs)).toThrow(/no sample for field within.noveltyIds of GET/);
  });
});

describe("an admin who acts for a tenant", () => {
  it("reads there what the tenant itself reads, and nothing of anybody else", async () => {
    const headers = { "punctual-tenant": theirs.tenant };
    for (const route of ROUTES) {
      if (route.method !== "get" || route.roles === "everybody" || !namesSomething(route)) continue;
      let best = 999;
      for (const path of pathsOf(route, theirs)) {
        const answer = await call(server.url, "GET", path, { key: admin, headers });
        best = Math.min(best, answer.status);
        expect([nameOf(route), answer.text.includes(mine.mark)]).toEqual([nameOf(route), false]);
      }
      expect([nameOf(route), best]).toEqual([nameOf(route), 200]);
    }
  });
});

import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { auditEventSchema } from "../../../src/api/present/audit.ts";
import { createClient } from "../../../src/client/client.ts";
import { mintId, readId, showId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { call, startTestServer, type TestServer } from "../server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.close());

const MANY = sql(
  "test_many_events",
  `insert into audit_event (tenant_id, at, actor, action, subject, request_id, after)
   select $1, $2::timestamptz + n * interval '1 ms', case when n % 2 = 0 then 'ann' else 'bob' end,
          case when n % 1000 = 0 then 'rare' else 'calendar.change' end, 'days-' || n % 10, 'call-' || n,
          jsonb_build_object('n', n, 'fill', repeat('x', $4))
     from generate_series(1, $3::int) n`,
);
const LONG_AGO = "2026-01-01T00:00:00Z";
/** Keeps out what making the test's own keys has written. */
const BEFORE_NOW = "to=2026-06-01T00:00:00Z";
const iso = (n: number) => new Date(Date.parse(LONG_AGO) + n).toISOString();

async function tenantWith(name: string, events: number, fill = 0): Promise<{ tenantId: string; key: string }> {
  const tenantId = await server.tenant(name);
  await server.db.query(MANY, [tenantId, LONG_AGO, events, fill]);
  return { tenantId, key: await server.key(tenantId, "owner") };
}
type Item = { eventId: string; after: { n: number } };
const numbers = (items: unknown) => (items as Item[]).map((one) => one.after.n);

describe("GET /v1/audit-events", () => {
  it("lists a tenant's events newest first, page by page, each once", async () => {
    const { key } = await tenantWith("pages", 450);
    const seen: number[] = [];
    for (let after = ""; ; ) {
      const { body, text } = await call(server.url, "GET", `/v1/audit-events?limit=200&${BEFORE_NOW}${after}`, { key });
      for (const one of body.items as object[]) auditEventSchema.parse(one);
      seen.push(...numbers(body.items ?? text));
      if (body.next === null) break;
      after = `&after=${String(body.next)}`;
    }
    expect(seen).toEqual(Array.from({ length: 450 }, (_, i) => 450 - i));
  });

  it("finds by who, by what, on what, in which call and when, in any combination", async () => {
    const { key } = await tenantWith("filters", 3_000);
    const list = async (query: string) =>
      numbers((await call(server.url, "GET", `/v1/audit-events?limit=200&${query}`, { key })).body.items);
    expect(await list("actor=ann&subject=days-4&to=2026-01-01T00:00:00.030Z")).toEqual([24, 14, 4]);
    expect(await list("requestId=call-17")).toEqual([17]);
    expect(await list("requestId=call-17&actor=ann")).toEqual([]);
    expect(await list("action=rare")).toEqual([3_000, 2_000, 1_000]);
    expect(await list(`from=${iso(10)}&to=${iso(13)}`)).toEqual([12, 11, 10]);
    expect(await list("subject=nothing")).toEqual([]);
  });

  it("takes and shows the ids that people know, and the labels of keys", async () => {
    const { tenantId, key } = await tenantWith("ids", 0);
    const id = mintId(Date.parse(LONG_AGO), 1);
    const { body: me } = await call(server.url, "GET", "/v1/me", { key });
    const actor = /key_[0-9a-z]{26}/.exec(JSON.stringify(me))![0];
    await server.db.query(
      sql(
        "test_one_event",
        "insert into audit_event (tenant_id, at, actor, action, subject, key_id) values ($1, $2::timestamptz, $3, 'schedule.pause', $4, $5)",
      ),
      [tenantId, LONG_AGO, actor, id, readId("key", actor)],
    );
    const shown = showId("sch", id);
    const { body } = await call(server.url, "GET", `/v1/audit-events?subject=${shown}&actor=${actor}`, { key });
    expect(body.items).toMatchObject([{ subject: shown, actor, keyId: actor, actorLabel: "owner of a test" }]);
  });

  it("is for owners and admins, of their own tenant", async () => {
    const { tenantId } = await tenantWith("roles", 3);
    const status = async (role: "admin" | "owner" | "operator" | "viewer" | "worker", path: string) =>
      (await call(server.url, "GET", path, { key: await server.key(tenantId, role) })).status;
    for (const path of ["/v1/audit-events", "/v1/audit-events/export"]) {
      expect([await status("admin", path), await status("owner", path)]).toEqual([200, 200]);
      for (const role of ["operator", "viewer", "worker"] as const) expect(await status(role, path), role).toBe(403);
    }
    const stranger = await server.key(await server.tenant("stranger to roles"), "owner");
    expect((await call(server.url, "GET", `/v1/audit-events?${BEFORE_NOW}`, { key: stranger })).body.items).toEqual([]);
    expect((await call(server.url, "GET", `/v1/audit-events/export?${BEFORE_NOW}`, { key: stranger })).text).toBe("");
  });

  it("shows what a call has just written, once it is complete up to there", async () => {
    const key = await server.key(await server.tenant("live"), "owner");
    const headers = { "x-request-id": "live-1" };
    await call(server.url, "PUT", "/v1/calendars/live", { key, body: { weekend: [] }, headers });
    await expect
      .poll(async () => (await call(server.url, "GET", "/v1/audit-events?requestId=live-1", { key })).body.items, {
        interval: 300,
      })
      .toMatchObject([{ action: "calendar.create", subject: "live", after: { version: 1 }, address: "127.0.0.1" }]);
  });
});

describe("GET /v1/audit-events/export", () => {
  const client = (key: string) => createClient({ url: server.url, key, sleep: (ms) => pause(ms) });

  it("tells every event of a period once, oldest first, and where the next export goes on", async () => {
    const { key } = await tenantWith("export", 1_234);
    const first = await client(key).audit.export({ to: iso(1_000) });
    expect(first.until).toBe("2026-01-01T00:00:01Z");
    const seen: number[] = [];
    for await (const event of first.events) seen.push((event.after as { n: number }).n);
    const rest = await client(key).audit.export({ from: first.until, actor: "ann" });
    for await (const event of rest.events) seen.push((event.after as { n: number }).n);
    const ofAnn = Array.from({ length: 118 }, (_, i) => 1_000 + 2 * i);
    expect(seen).toEqual([...Array.from({ length: 999 }, (_, i) => i + 1), ...ofAnn]);
    expect(Date.parse(rest.until)).toBeLessThanOrEqual(Date.now());
  });

  it("finds the rare among many", async () => {
    const { key } = await tenantWith("rare", 12_000);
    const { events } = await client(key).audit.export({ action: "rare" });
    const seen: number[] = [];
    for await (const event of events) seen.push((event.after as { n: number }).n);
    expect(seen).toEqual(Array.from({ length: 12 }, (_, i) => (i + 1) * 1_000));
  });

  it("of 60,000 events holds a page of them while its reader is slow, asks the database no further, and ends whole", async () => {
    const { tenantId, key } = await tenantWith("slow", 60_000, 1_000);
    const asked = await statementsDuring(async () => {
      const response = await fetch(`${server.url}/v1/audit-events/export`, {
        headers: { authorization: `Bearer ${key}` },
      });
      const reader = response.body!.getReader();
      let text = "";
      const decoder = new TextDecoder();
      const read = async () => {
        const { done, value } = await reader.read();
        if (value !== undefined) text += decoder.decode(value, { stream: true });
        return !done;
      };
      await read();
      // The reader rests: what is on its way fills the sockets, and then nobody asks for more.
      const still = await settles();
      expect(still).toBeLessThan(100);
      // Late comers are past the bound.
      await server.db.query(MANY, [tenantId, new Date().toISOString(), 10, 0]);
      while (await read());
      const ofMany = (line: string) => /"action":"(rare|calendar\.change)"/.test(line);
      const lines = text.trimEnd().split("\n").filter(ofMany);
      expect(lines).toHaveLength(60_000);
      expect(numbers(lines.map((line) => JSON.parse(line)))).toEqual(Array.from({ length: 60_000 }, (_, i) => i + 1));
    });
    expect(asked).toBeGreaterThanOrEqual(300);
  });

  it("that breaks off is no whole answer", async () => {
    const { key } = await tenantWith("broken", 20_000, 1_000);
    const { events } = await client(key).audit.export();
    await events.next();
    const rest = (async () => {
      for await (const _ of events);
    })();
    await server.db.query(sql("test_break", "alter table audit_event rename to audit_event_gone"));
    await expect(rest).rejects.toThrow();
    await server.db.query(sql("test_mend", "alter table audit_event_gone rename to audit_event"));
  });

  let pagesAsked = 0;
  async function statementsDuring(work: () => Promise<void>): Promise<number> {
    const { db } = server.authority;
    const { within } = db;
    pagesAsked = 0;
    db.within = (enter) => {
      const reads = within(enter);
      const queryWithin: typeof reads.queryWithin = (...args) => {
        pagesAsked++;
        return reads.queryWithin(...args);
      };
      return { ...reads, queryWithin };
    };
    try {
      await work();
    } finally {
      db.within = within;
    }
    return pagesAsked;
  }

  /** How many pages were asked for by the time that no more are, for some looks on end. */
  async function settles(): Promise<number> {
    for (let same = 0, last = -1; ; await pause(100)) {
      same = pagesAsked === last ? same + 1 : 0;
      last = pagesAsked;
      if (same === 5) return pagesAsked;
    }
  }
});

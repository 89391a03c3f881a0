import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { sql } from "../../src/store/database.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
let viewer: string;
let stranger: string;

beforeAll(async () => {
  server = await startTestServer();
  const acme = await server.tenant("acme");
  owner = await server.key(acme, "owner");
  viewer = await server.key(acme, "viewer");
  stranger = await server.key(await server.tenant("globex"), "owner");
});
afterAll(() => server?.close());

const send = (method: string, path: string, body?: unknown, key = owner, headers = {}) =>
  call(server.url, method, path, { key, body, headers });
const put = (name: string, body: unknown, key = owner) => send("PUT", `/v1/calendars/${name}`, body, key);
const schedule = (calendars: unknown, more: object = {}) => ({
  name: "Report",
  rule: { kind: "cron", expression: "0 9 * * *", zone: "Europe/Berlin" },
  job: REPORT,
  calendars,
  ...more,
});

describe("a calendar", () => {
  it("is made, read, changed and listed; its versions stay", async () => {
    const made = await put("holidays", { yearly: [{ date: "12-25", name: "Christmas" }] });
    expect([made.status, made.headers.get("etag")]).toEqual([200, '"1"']);
    expect(made.body).toMatchObject({
      name: "holidays",
      version: 1,
      weekend: ["saturday", "sunday"],
      dates: [],
      yearly: [{ date: "12-25", name: "Christmas" }],
    });
    const change = { expectedVersion: 1, weekend: [], dates: [{ date: "2026-12-24" }] };
    expect((await put("holidays", change)).body.version).toBe(2);
    expect((await send("GET", "/v1/calendars/holidays")).body).toMatchObject({ version: 2, weekend: [], yearly: [] });
    expect((await send("GET", "/v1/calendars/holidays?version=1")).body).toMatchObject({ version: 1, dates: [] });
    expect((await send("GET", "/v1/calendars/holidays?version=9")).status).toBe(404);

    await put("another", {});
    const first = await send("GET", "/v1/calendars?limit=1");
    expect(first.body.items).toMatchObject([{ name: "another", version: 1, entries: 0 }]);
    const second = await send("GET", `/v1/calendars?limit=1&after=${first.body.next}`);
    expect(second.body).toMatchObject({ items: [{ name: "holidays", version: 2, entries: 1 }], next: null });
    expect((await send("GET", "/v1/calendars/holidays/versions")).body.items).toMatchObject([
      { version: 2, entries: 1 },
      { version: 1, entries: 1 },
    ]);
  });

  it("is changed only by who knows its version, and a repeat changes nothing", async () => {
    await put("guarded", { dates: [{ date: "2026-01-01" }] });
    const change = { dates: [{ date: "2026-01-02" }] };
    for (const [body, found] of [
      [change, 0],
      [{ ...change, expectedVersion: 7 }, 7],
    ] as const) {
      const refused = await put("guarded", body);
      expect([refused.status, refused.body.code]).toEqual([409, "calendar-conflict"]);
      expect(refused.body).toMatchObject({
        detail: `expectedVersion: found ${found}; the calendar is at version 1`,
        current: { version: 1, dates: [{ date: "2026-01-01" }] },
      });
    }
    const changed = await send("PUT", "/v1/calendars/guarded", change, owner, { "if-match": '"1"' });
    expect(changed.body.version).toBe(2);
    expect((await put("guarded", { ...change, expectedVersion: 1 })).body.version).toBe(2);
    const none = await put("never-made", { expectedVersion: 3 });
    expect([none.status, none.body.current]).toEqual([409, null]);
    expect((await send("PUT", "/v1/calendars/guarded", change, owner, { "if-match": "three" })).status).toBe(400);
  });

  it.each([
    [{ dates: [{ date: "2026-02-29" }] }, "dates[0].date", "must be a date that exists, such as 2026-12-25"],
    [{ ranges: [{ from: "2026-12-25", to: "2026-12-24" }] }, "ranges[0].to", "must not be before `from`"],
    [{ yearly: [{ date: "12-32" }] }, "yearly[0].date", "must be a month and day that exist, such as 12-25"],
    [{ weekend: ["sat"] }, "weekend[0]", "is not one of the allowed values"],
    [{ date: [] }, "date", "is not a known field"],
    [{ dates: [{ date: "2026-12-25", note: "x" }] }, "dates[0].note", "is not a known field"],
    [{ zone: "Europe/Berln" }, "zone", "the time zone database (2026f) has no zone of this name"],
    [{ dates: Array.from({ length: 5001 }, () => ({ date: "2026-12-25" })) }, "dates", "is too big"],
  ])("that cannot be is refused by field: %#", async (body, field, message) => {
    const refused = await put("refused", body);
    expect([refused.status, refused.body.code]).toEqual([400, "invalid-request"]);
    expect(refused.body.errors).toMatchObject([{ field }]);
    expect((refused.body.errors as { message: string }[])[0]!.message.replace(/\(\d{4}\w\)/, "(2026f)")).toBe(message);
    expect((await send("GET", "/v1/calendars/refused")).status).toBe(404);
  });

  it("has a name that can stand in a path", async () => {
    const refused = await put("Company%20Holidays", {});
    expect(refused.body).toMatchObject({ code: "invalid-request", errors: [{ field: "calendar" }] });
  });

  it("takes 5,000 entries", async () => {
    const yearly = Array.from({ length: 5000 }, (_, n) => ({ date: `0${1 + (n % 9)}-1${n % 10}`, name: `Day ${n}` }));
    expect((await put("full", { yearly })).status).toBe(200);
    expect((await send("GET", "/v1/calendars/full")).body.yearly).toHaveLength(5000);
  });

  it("belongs to its tenant, and roles are kept", async () => {
    await put("private", { dates: [{ date: "2026-01-01" }] });
    expect((await send("GET", "/v1/calendars/private", undefined, stranger)).status).toBe(404);
    expect((await send("GET", "/v1/calendars/private/versions", undefined, stranger)).status).toBe(404);
    expect((await send("DELETE", "/v1/calendars/private", undefined, stranger)).status).toBe(404);
    expect((await send("GET", "/v1/calendars", undefined, stranger)).body.items).toEqual([]);
    expect((await put("private", { weekend: [] }, stranger)).body.version).toBe(1);
    expect((await send("GET", "/v1/calendars/private", undefined, viewer)).body.version).toBe(1);
    expect((await put("private", {}, viewer)).body.code).toBe("forbidden");
    expect((await send("DELETE", "/v1/calendars/private", undefined, viewer)).body.code).toBe("forbidden");
  });
});

describe("a schedule", () => {
  it("that names an unknown calendar is refused, with what was probably meant", async () => {
    await put("company-holidays", {});
    const uses = [{ name: "company-holidays", onExcluded: "shift" }];
    const wrong = [...uses, { name: "company-holydays", onExcluded: "exclude" }];
    const expected = {
      code: "unknown-calendar",
      errors: [{ field: "calendars[1].name", found: '"company-holydays"', didYouMean: "company-holidays" }],
    };
    const refused = await send("POST", "/v1/schedules", schedule(wrong));
    expect([refused.status, refused.body.code]).toEqual([400, "unknown-calendar"]);
    expect(refused.body).toMatchObject(expected);

    const made = await send("POST", "/v1/schedules", schedule(uses));
    expect([made.status, made.body.calendars]).toEqual([201, uses]);
    const path = `/v1/schedules/${made.body.scheduleId}`;
    expect((await send("PATCH", path, { expectedRevision: 1, calendars: wrong })).body).toMatchObject(expected);
    const { rule } = schedule([]);
    expect((await send("POST", "/v1/schedules/preview", { rule, calendars: wrong })).body).toMatchObject(expected);
    // Another tenant's calendar is as unknown.
    const theirs = await send("POST", "/v1/schedules", schedule(uses), stranger);
    expect(theirs.body).toMatchObject({ code: "unknown-calendar" });
    expect(theirs.text).not.toContain("didYouMean");
  });

  it.each([
    [[{ name: "x", onExcluded: "drop" }], "calendars[0].onExcluded"],
    [[{ name: "x" }], "calendars[0].onExcluded"],
    [[{ name: "X y", onExcluded: "shift" }], "calendars[0].name"],
    [["holidays"], "calendars[0]"],
    [Array.from({ length: 9 }, (_, n) => ({ name: `c${n}`, onExcluded: "shift" })), "calendars"],
    [Array.from({ length: 2 }, () => ({ name: "c", onExcluded: "shift" })), "calendars"],
  ])("names its calendars rightly: %#", async (calendars, field) => {
    const refused = await send("POST", "/v1/schedules", schedule(calendars));
    expect(refused.body).toMatchObject({ code: "invalid-request", errors: [{ field }] });
  });

  it("keeps its calendars from being deleted until it lets them go", async () => {
    await put("used", {});
    await put("used-too", {});
    const both = ["used", "used-too"].map((name) => ({ name, onExcluded: "exclude" }));
    const made = await send("POST", "/v1/schedules", schedule(both));
    const { scheduleId } = made.body;
    const refused = await send("DELETE", "/v1/calendars/used");
    expect([refused.status, refused.body.code]).toEqual([409, "calendar-in-use"]);
    expect(refused.body.scheduleIds).toEqual([scheduleId]);

    await send("PATCH", `/v1/schedules/${scheduleId}`, { expectedRevision: 1, calendars: both.slice(1) });
    expect((await send("DELETE", "/v1/calendars/used")).body).toEqual({ name: "used", version: 1 });
    expect((await send("GET", "/v1/calendars/used")).status).toBe(404);
    expect((await send("GET", "/v1/calendars/used?version=1")).status).toBe(200);
    expect((await put("used", {})).body.version).toBe(2);

    expect((await send("DELETE", "/v1/calendars/used-too")).status).toBe(409);
    await send("POST", `/v1/schedules/${scheduleId}/pause`, {});
    expect((await send("DELETE", "/v1/calendars/used-too")).status).toBe(409);
    await send("DELETE", `/v1/schedules/${scheduleId}`);
    expect((await send("DELETE", "/v1/calendars/used-too")).status).toBe(200);
    expect((await send("DELETE", "/v1/calendars/used-too")).status).toBe(404);
  });

  it("is previewed with what calendars do to it", async () => {
    await put("winter", { weekend: [], dates: [{ date: "2026-12-25", name: "Christmas" }] });
    const preview = async (onExcluded: string, rule: object = schedule([]).rule) =>
      (
        await send("POST", "/v1/schedules/preview", {
          rule,
          calendars: [{ name: "winter", onExcluded }],
          from: "2026-12-24T12:00:00Z",
          count: 2,
        })
      ).body as { instants: object[]; notes: object[] };
    const excluded = await preview("exclude");
    expect(excluded.instants).toMatchObject([{ at: "2026-12-26T08:00:00Z" }, { at: "2026-12-27T08:00:00Z" }]);
    expect(excluded.notes).toMatchObject([
      { at: "2026-12-25T08:00:00Z", kind: "calendar", text: "excluded by Christmas" },
    ]);
    const shifted = await preview("shift", { kind: "cron", expression: "0 9 25 * *", zone: "Europe/Berlin" });
    expect(shifted.instants[0]).toMatchObject({
      at: "2026-12-25T08:00:00Z",
      dueAt: "2026-12-26T08:00:00Z",
      label: "moved from 2026-12-25 by Christmas",
    });
  });
});

it("every change of a calendar is an audit event", async () => {
  await put("audited", {});
  await put("audited", { weekend: [], expectedVersion: 1 });
  await send("DELETE", "/v1/calendars/audited");
  const rows = await server.db.query(
    sql("test_audit", "select action, before, after from audit_event where subject = 'audited' order by id"),
    [],
  );
  expect(rows).toEqual([
    { action: "calendar.create", before: null, after: { version: 1 } },
    { action: "calendar.change", before: { version: 1 }, after: { version: 2 } },
    { action: "calendar.delete", before: { version: 2 }, after: null },
  ]);
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { announceWorker } from "../../src/authority/dispatch/presence.ts";
import { setQuota } from "../../src/authority/tenants/set-quota.ts";
import { mintId } from "../../src/kernel/ids.ts";
import { punctual } from "../app/cli/punctual.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
let owner: string;
let tenantId: string;
const send = (method: string, path: string, body?: unknown, key = owner) =>
  call(server.url, method, path, { key, ...(body === undefined ? {} : { body }) });

type Instant = { at: string; local: string; label?: string; labels: { kind: string; text: string }[] };
type Preview = {
  instants: Instant[];
  notes: { kind: string; at: string; text: string; count: number }[];
  feasibility: Record<string, unknown> | null;
  diff: Record<string, { at: string; field: string }[]>;
};
const preview = async (body: object) => {
  const answer = await send("POST", "/v1/schedules/preview", body);
  expect(answer.status, answer.text).toBe(200);
  return answer.body as unknown as Preview;
};

beforeAll(async () => {
  server = await startTestServer();
  tenantId = await server.tenant("acme");
  owner = await server.key(tenantId, "owner");
});
afterAll(() => server?.close());

const zone = "America/New_York";
const rule = (expression: string, more: object = {}) => ({ kind: "cron", expression, zone, ...more });

describe("a preview", () => {
  it("labels what a clock change touched, and names what it leaves out", async () => {
    const spring = await preview({ rule: rule("30 2 * * *"), from: "2026-03-07T12:00:00Z", count: 2 });
    expect(spring.instants).toMatchObject([
      {
        at: "2026-03-08T07:00:00Z",
        dueAt: "2026-03-08T07:00:00Z",
        local: "2026-03-08T03:00:00-04:00[America/New_York]",
        label: "02:30 does not exist that day; runs at 03:00, the first instant after the gap",
        labels: [{ kind: "gap" }],
      },
      { at: "2026-03-09T06:30:00Z", labels: [] },
    ]);
    const autumn = await preview({ rule: rule("30 1,3 * * *"), from: "2026-11-01T04:00:00Z", count: 2 });
    expect(autumn.instants.map((one) => one.labels.map((label) => label.kind))).toEqual([["overlap"], ["clock"]]);
    const skipping = await preview({
      rule: rule("30 2 * * *", { gap: "skip" }),
      from: "2026-03-07T12:00:00Z",
      count: 1,
    });
    expect(skipping).toMatchObject({
      instants: [{ at: "2026-03-09T06:30:00Z" }],
      notes: [{ kind: "gap", at: "2026-03-08T07:00:00Z", local: expect.stringContaining("T03:00:00"), count: 1 }],
    });
  });

  it("is what the command line computes without a server", async () => {
    const from = "2026-10-31T12:00:00Z";
    const { feasibility, ...answer } = await preview({ rule: rule("30 1 * * *"), from, count: 3 });
    const { out } = await punctual(["preview", "30 1 * * *", "--tz", zone, "--from", from, "--count", "3", "--json"]);
    expect(feasibility).not.toBeNull();
    expect(JSON.parse(out)).toEqual(answer);
  });

  it("keeps to startAt, endAt and maxRuns, and says so in words", async () => {
    const bounds = { startAt: "2026-06-01T09:00:00Z", endAt: "2026-06-04T09:00:00Z", maxRuns: 2 };
    const asked = { rule: rule("0 9 * * *", { zone: "UTC" }), ...bounds, from: "2026-01-01T00:00:00Z" };
    expect(await preview(asked)).toMatchObject({
      description: "At 09:00, UTC time; from 2026-06-01T09:00:00Z; until before 2026-06-04T09:00:00Z; at most 2 runs",
      instants: [{ at: "2026-06-01T09:00:00Z" }, { at: "2026-06-02T09:00:00Z" }],
    });
  });

  it("of a rule without instants is empty, and quotes nothing", async () => {
    const answer = await preview({ rule: { kind: "afterCompletion", delayMs: 1000 } });
    expect(answer).toMatchObject({ instants: [], feasibility: null });
  });
});

it.each([
  ["0000-01-01T00:00:00Z", 100],
  ["0001-01-01T00:00:00Z", 100],
  ["9996-01-01T00:00:00Z", 1],
  ["9999-12-31T23:59:59Z", 0],
])("a preview from %s on answers like any other", async (from, most) => {
  const rules = ["0 0 29 2 *", "30 2 * 2 1#5", "0 0 31 12 */6"].map((one) => rule(one, { gap: "skip" }));
  const asked = { rule: { kind: "anyOf", rules }, from, count: 100, windowMs: 86_400_000 };
  const { instants, feasibility } = await preview(asked);
  expect(instants.length).toBeGreaterThanOrEqual(most);
  expect(feasibility === null).toBe(instants.length === 0);
});

describe("a preview with calendars or a window", () => {
  const daily = { rule: rule("0 9 * * *", { zone: "UTC" }), from: "2026-12-24T12:00:00Z", count: 2 };

  beforeAll(async () => {
    const holidays = { weekend: [], dates: [{ date: "2026-12-25", name: "Christmas" }] };
    const made = await call(server.url, "PUT", "/v1/calendars/holidays", {
      key: owner,
      body: { expectedVersion: 0, ...holidays },
    });
    expect(made.status, made.text).toBeLessThan(300);
  });

  it("leaves out what a calendar excludes, and says when and why it moved an instant", async () => {
    const excluding = { ...daily, calendars: [{ name: "holidays", onExcluded: "exclude" }] };
    expect(await preview(excluding)).toMatchObject({
      description: "At 09:00, UTC time; not on days excluded by holidays",
      instants: [{ at: "2026-12-26T09:00:00Z", labels: [] }, { at: "2026-12-27T09:00:00Z" }],
      notes: [{ kind: "calendar", at: "2026-12-25T09:00:00Z", text: "excluded by Christmas", count: 1 }],
    });
    const shifting = { ...daily, rule: rule("0 9 25 * *", { zone: "UTC" }) };
    expect(
      await preview({ ...shifting, calendars: [{ name: "holidays", onExcluded: "shift" }], count: 1 }),
    ).toMatchObject({
      instants: [
        {
          at: "2026-12-25T09:00:00Z",
          dueAt: "2026-12-26T09:00:00Z",
          dueLocal: "2026-12-26T09:00:00+00:00[UTC]",
          label: "moved from 2026-12-25 by Christmas",
          labels: [{ kind: "calendar" }],
        },
      ],
    });
    const unknown = { ...daily, calendars: [{ name: "holiday", onExcluded: "shift" }] };
    expect((await send("POST", "/v1/schedules/preview", unknown)).body).toMatchObject({
      code: "unknown-calendar",
      errors: [{ didYouMean: "holidays" }],
    });
  });

  it("says what a calendar would do to a schedule that exists", async () => {
    const made = await send("POST", "/v1/schedules", {
      name: "to close",
      rule: daily.rule,
      job: REPORT,
      class: "long",
    });
    const path = `/v1/schedules/${String(made.body.scheduleId)}/preview`;
    const calendars = [{ name: "holidays", onExcluded: "exclude" }];
    const answer = await send("POST", path, { calendars, from: daily.from, count: 2 });
    expect(answer.body).toMatchObject({
      diff: {
        fields: [{ field: "calendars", to: calendars }],
        vanish: [{ at: "2026-12-25T09:00:00Z" }],
        appear: [],
        stay: [{ at: "2026-12-26T09:00:00Z" }, { at: "2026-12-27T09:00:00Z" }],
      },
    });
  });

  it("tells a new schedule its window, and one that exists the very instant at which it will be due", async () => {
    expect(await preview({ ...daily, windowMs: 600_000 })).toMatchObject({
      instants: [
        {
          dueAt: "2026-12-25T09:00:00Z",
          dueBefore: "2026-12-25T09:10:00Z",
          label: "starts somewhere in 09:00–09:10, always the same for this schedule",
        },
        {},
      ],
    });
    const body = { name: "spread", rule: daily.rule, job: REPORT, class: "long", windowMs: 3_600_000 };
    const made = await send("POST", "/v1/schedules", body);
    const path = `/v1/schedules/${String(made.body.scheduleId)}/preview`;
    const { instants } = (await send("POST", path, { count: 1 })).body as unknown as Preview;
    expect(instants[0]).toMatchObject({ at: made.body.nextRunAt, dueAt: made.body.nextDueAt });
    expect(made.body.nextDueAt).not.toBe(made.body.nextRunAt);
    expect(instants[0]!.label).toMatch(/its own place in the window that opens at 09:00$/);
    const wider = (await send("POST", path, { windowMs: null, count: 1 })).body as unknown as Preview;
    expect(wider.diff.stay).toMatchObject([{ movedFrom: made.body.nextDueAt, movedTo: made.body.nextRunAt }]);
  });
});

describe("the feasibility quote", () => {
  const nightly = { rule: rule("15 2 * * *", { zone: "UTC" }), class: "memory" };
  const quote = async () => (await preview(nightly)).feasibility;

  it("counts the tenant's other schedules in that minute, and needs workers", async () => {
    expect(await quote()).toMatchObject({ verdict: "no-workers", expectedRuns: { value: 1, capped: false } });
    for (const expression of ["15 2 * * *", "*/5 * * * *", "16 2 * * *"]) {
      const body = { name: "other", rule: rule(expression, { zone: "UTC" }), job: REPORT, class: "memory" };
      expect((await send("POST", "/v1/schedules", body)).status).toBe(201);
    }
    await send("POST", "/v1/schedules", { name: "other class", rule: nightly.rule, job: REPORT });
    const stranger = await server.key(await server.tenant("strangers"), "owner");
    await send("POST", "/v1/schedules", { name: "foreign", ...nightly, job: REPORT }, stranger);
    expect(await quote()).toMatchObject({ expectedRuns: { value: 3, capped: false } });
  });

  it("is made of slots, durations and limits, and says where they come from", async () => {
    const worker = { id: mintId(Date.now(), 1), name: "w", version: "0", slots: { memory: { slots: 2, p95Ms: 4000 } } };
    await announceWorker(server.authority, worker);
    expect(await quote()).toMatchObject({
      verdict: "within-objective",
      slots: 2,
      p95Ms: 4000,
      lastStartsAfterMs: 4000,
      minuteAt: expect.stringContaining("T02:15:00Z"),
      basis: { expectedRuns: "all-active-schedules", p95Ms: "workers", samples: 0 },
    });
    await announceWorker(server.authority, { ...worker, slots: { memory: { slots: 1, p95Ms: 40_000 } } });
    expect(await quote()).toMatchObject({
      verdict: "needs-window",
      limitedBy: "slots",
      lastStartsAfterMs: 80_000,
      windowMsNeeded: 120_000,
      text: expect.stringContaining("spread over a window of 2 minutes"),
    });
    const quota = { maxRunning: 0, startRatePerSecond: null, weight: 1, onInfeasible: "warn" } as const;
    await setQuota(server.authority, { tenantId, actor: "test", class: "memory", quota });
    expect(await quote()).toMatchObject({ verdict: "over-quota", maxRunning: 0, lastStartsAfterMs: null });
  });
});

describe("a preview of a change", () => {
  const make = async (body: object) =>
    String(
      (await send("POST", "/v1/schedules", { name: "s", rule: rule("0 9 * * *"), job: REPORT, ...body })).body
        .scheduleId,
    );

  it("says which fields change, and which instants stay, vanish and appear; and changes nothing", async () => {
    const id = await make({ endAt: "2090-01-01T00:00:00Z" });
    const answer = await send("POST", `/v1/schedules/${id}/preview`, {
      rule: rule("0 9,10 * * 1-5"),
      endAt: null,
      from: "2026-06-05T14:00:00Z",
      count: 3,
    });
    expect(answer.status, answer.text).toBe(200);
    const { diff, instants } = answer.body as unknown as Preview;
    expect(diff).toMatchObject({
      against: 1,
      fields: [
        { field: "rule.expression", from: "0 9 * * *", to: "0 9,10 * * 1-5" },
        { field: "endAt", from: "2090-01-01T00:00:00Z" },
      ],
    });
    expect(diff.fields).toHaveLength(2);
    // Friday evening: Saturday and Sunday are lost, Monday stays, and has two.
    expect(diff.vanish!.map((one) => one.at)).toEqual(["2026-06-06T13:00:00Z", "2026-06-07T13:00:00Z"]);
    expect(diff.stay!.map((one) => one.at)).toEqual(["2026-06-08T13:00:00Z", "2026-06-09T13:00:00Z"]);
    expect(diff.appear!.map((one) => one.at)).toEqual(["2026-06-08T14:00:00Z"]);
    expect(instants).toHaveLength(3);
    expect((await send("GET", `/v1/schedules/${id}`)).body).toMatchObject({ revision: 1, rule: rule("0 9 * * *") });
  });

  it("without a change previews the schedule as it is, counted once", async () => {
    const id = await make({ class: "long", rule: rule("7 7 * * *") });
    const { body } = await send("POST", `/v1/schedules/${id}/preview`, {});
    expect(body).toMatchObject({
      instants: { length: 5 },
      feasibility: { expectedRuns: { value: 1 } },
      diff: { fields: [], vanish: [], appear: [], stay: { length: 5 } },
    });
  });

  it("is refused as the change itself would be, and of a strange schedule", async () => {
    const id = await make({});
    const path = `/v1/schedules/${id}/preview`;
    expect((await send("POST", path, { rule: rule("0 25 * * *") })).body).toMatchObject({
      code: "invalid-rule",
      errors: [{ field: "rule.hour", found: '"25"' }],
    });
    expect((await send("POST", path, { payload: { refuse: 1 } })).body.code).toBe("invalid-request");
    expect((await send("POST", path, { endAt: "2001-01-01T00:00:00Z", startAt: "2002-01-01T00:00:00Z" })).status).toBe(
      400,
    );
    expect((await send("POST", path, { key: "x" })).status).toBe(400);
    const stranger = await server.key(await server.tenant("other"), "owner");
    expect((await send("POST", path, {}, stranger)).status).toBe(404);
  });
});

describe("a difference of revisions", () => {
  it("is told field by field, with the instants gained and lost in the next 30 days", async () => {
    const made = await send("POST", "/v1/schedules", {
      name: "revised",
      key: "revised",
      rule: rule("0 9 * * *"),
      job: REPORT,
      payload: { period: "day", deep: { x: 1 } },
    });
    expect(made.status).toBe(201);
    const path = "/v1/schedules/key:revised";
    await send("PATCH", path, { expectedRevision: 1, rule: rule("0 9,17 * * *") });
    await send("PATCH", path, { expectedRevision: 2, payload: { period: "day", deep: { x: 2 } } });
    const second = await send("GET", `${path}/revisions/2/diff`);
    expect(second.status, second.text).toBe(200);
    expect(second.body).toMatchObject({
      revision: 2,
      against: 1,
      fields: [{ field: "rule.expression", from: "0 9 * * *", to: "0 9,17 * * *" }],
      instants: { gained: { count: 30 }, lost: { count: 0, first: [] }, moved: { count: 0 }, kept: 30 },
    });
    expect((await send("GET", `${path}/revisions/3/diff`)).body).toMatchObject({
      fields: [{ field: "payload.deep.x", from: 1, to: 2 }],
      instants: { gained: { count: 0 }, lost: { count: 0 }, kept: 60 },
    });
    const back = await send("GET", `${path}/revisions/1/diff?against=3`);
    expect(back.body).toMatchObject({ against: 3, instants: { gained: { count: 0 }, lost: { count: 30 } } });
    const first = await send("GET", `${path}/revisions/1/diff`);
    expect(first.body).toMatchObject({ against: null, instants: { gained: { count: 30 }, kept: 0 } });
    expect((first.body.fields as { field: string }[]).map((one) => one.field)).toContain("rule");
  });

  it("of a revision that is not there, or the same one, is refused", async () => {
    const path = "/v1/schedules/key:revised/revisions";
    expect((await send("GET", `${path}/9/diff`)).body.code).toBe("not-found");
    expect((await send("GET", `${path}/2/diff?against=9`)).body.code).toBe("not-found");
    expect((await send("GET", `${path}/2/diff?against=2`)).body).toMatchObject({ errors: [{ field: "against" }] });
    expect((await send("GET", `${path}/x/diff`)).status).toBe(400);
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { mintId, readId, showId } from "../../../src/kernel/ids.ts";
import { startTestServer, type TestServer } from "../server.ts";
import { callerOf, movableClock, SCHEDULE } from "./setting.ts";

const clock = movableClock();
const REPORT = "report.run-summary";
let server: TestServer;
let platformId: string;
let admin: ReturnType<typeof callerOf>;
let count = 0;

beforeAll(async () => {
  server = await startTestServer({ clock });
  platformId = await server.tenant("platform");
  admin = callerOf(server, await server.key(platformId, "admin"));
});
afterAll(() => server?.close());

/** A tenant with an operator. */
async function newTenant(body: object = {}) {
  const made = (await admin("POST", "/v1/tenants", { name: `tenant ${++count}`, ...body })).body;
  const tenantId = readId("ten", String(made.tenantId))!;
  const operator = callerOf(server, await server.key(tenantId, "operator"));
  const change = async (what: object) => {
    const answer = await admin("PATCH", `/v1/tenants/${made.tenantId}`, what);
    // What the API has just read of it, it reads anew.
    clock.forward(5_000);
    return answer;
  };
  return { tenantId, shown: String(made.tenantId), operator, change };
}

describe("a tenant", () => {
  it("is made by an admin, once for a name", async () => {
    const answer = await admin("POST", "/v1/tenants", { name: "Acme", allowedJobs: [REPORT, REPORT] });
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ name: "Acme", status: "active", allowedJobs: [REPORT] });
    const again = await admin("POST", "/v1/tenants", { name: "Acme" });
    expect([again.status, again.body.code, again.body.tenantId]).toEqual([
      409,
      "tenant-name-taken",
      answer.body.tenantId,
    ]);
    expect(again.body.detail).toContain(answer.body.tenantId);
    expect((await admin("GET", String(answer.headers.get("location")))).body).toEqual(answer.body);
  });

  it("is not called as another's id is: its tokens would be taken for that one's", async () => {
    const [one, other] = [await newTenant(), await newTenant()];
    const made = await admin("POST", "/v1/tenants", { name: one.shown });
    const renamed = await admin("PATCH", `/v1/tenants/${other.shown}`, { name: ` ${one.shown}` });
    for (const { status, body } of [made, renamed]) {
      expect([status, body.errors]).toEqual([
        400,
        [
          {
            field: "name",
            message: "must not look like the id of a tenant",
            found: expect.stringContaining(one.shown),
          },
        ],
      ]);
    }
  });

  it("is the platform's affair: nobody else sees or changes tenants, its own neither", async () => {
    const { tenantId, shown } = await newTenant();
    for (const role of ["owner", "operator", "viewer", "worker"] as const) {
      const other = callerOf(server, await server.key(tenantId, role));
      for (const [method, path, body] of [
        ["GET", "/v1/tenants", undefined],
        ["GET", `/v1/tenants/${shown}`, undefined],
        ["POST", "/v1/tenants", { name: "x" }],
        ["PATCH", `/v1/tenants/${shown}`, { allowedJobs: null }],
      ] as const) {
        expect((await other(method, path, body)).status, `${role} ${method} ${path}`).toBe(403);
      }
    }
  });

  it("is listed page by page, newest first, by status", async () => {
    const { shown, change } = await newTenant();
    await change({ status: "suspended" });
    await newTenant();
    const page = (await admin("GET", "/v1/tenants?status=suspended&limit=1")).body as { items: object[] };
    expect(page.items).toMatchObject([{ tenantId: shown, status: "suspended" }]);
    const first = (await admin("GET", "/v1/tenants?limit=1")).body as { items: object[]; next: string };
    const second = (await admin("GET", `/v1/tenants?limit=1&after=${first.next}`)).body as { items: object[] };
    expect([...first.items, ...second.items]).toMatchObject([{ status: "active" }, { tenantId: shown }]);
    expect((await admin("GET", `/v1/tenants?status=active&after=${first.next}`)).body.code).toBe("invalid-cursor");
  });

  it("is renamed, unless another has the name; an unknown one is a 404", async () => {
    const { shown, change } = await newTenant();
    expect((await change({ name: "Renamed" })).body).toMatchObject({ changed: true, tenant: { name: "Renamed" } });
    expect((await change({ name: "platform" })).body).toMatchObject({
      code: "tenant-name-taken",
      tenantId: showId("ten", platformId),
    });
    expect((await admin("GET", `/v1/tenants/${shown}`)).body.name).toBe("Renamed");
    const unknown = `/v1/tenants/${showId("ten", mintId(0, 0))}`;
    for (const answer of [await admin("GET", unknown), await admin("PATCH", unknown, { name: "x" })]) {
      expect([answer.status, answer.body.code]).toEqual([404, "tenant-not-found"]);
    }
  });
});

describe("a suspended tenant", () => {
  it("may read and look ahead, and changes nothing, its owner neither", async () => {
    const { tenantId, operator, change } = await newTenant();
    const made = (await operator("POST", "/v1/schedules", SCHEDULE)).body;
    const path = `/v1/schedules/${made.scheduleId}`;
    await change({ status: "suspended" });
    const owner = callerOf(server, await server.key(tenantId, "owner"));
    for (const [method, at, body] of [
      ["POST", "/v1/schedules", SCHEDULE],
      ["PATCH", path, { name: "x", expectedRevision: 1 }],
      ["POST", `${path}/pause`, {}],
      ["POST", `${path}/runs`, {}],
      ["DELETE", path, undefined],
      ["POST", "/v1/runs", { job: SCHEDULE.job }],
      ["PUT", "/v1/calendars/c", {}],
      ["POST", "/v1/api-keys", { label: "x", role: "viewer" }],
    ] as const) {
      const answer = await owner(method, at, body);
      expect([answer.status, answer.body.code], `${method} ${at}`).toEqual([403, "tenant-suspended"]);
    }
    for (const at of [path, "/v1/runs", "/v1/me", "/v1/schedules"])
      expect((await owner("GET", at)).status, at).toBe(200);
    expect((await operator("POST", `${path}/preview`, {})).status).toBe(200);
    expect((await operator("POST", "/v1/schedules/preview", { rule: SCHEDULE.rule })).status).toBe(200);
    const quoted = (await operator("POST", "/v1/schedules/preview", { rule: SCHEDULE.rule })).body.feasibility;
    expect(quoted).toMatchObject({ verdict: expect.stringMatching(/over-quota|no-workers/), maxRunning: 0 });
  });

  it("is changed by an admin who acts for it, and by itself again once it is resumed", async () => {
    const { tenantId, operator, change } = await newTenant();
    await change({ status: "suspended" });
    const acting = callerOf(server, await server.key(platformId, "admin"), tenantId);
    expect((await acting("POST", "/v1/schedules", SCHEDULE)).status).toBe(201);
    expect((await operator("POST", "/v1/runs", { job: SCHEDULE.job })).status).toBe(403);
    await change({ status: "active" });
    expect((await operator("POST", "/v1/runs", { job: SCHEDULE.job })).status).toBe(201);
  });

  it("does not lock its own admin out of resuming it", async () => {
    const own = await server.tenant("suspends itself");
    const self = callerOf(server, await server.key(own, "admin"));
    const path = `/v1/tenants/${showId("ten", own)}`;
    await self("PATCH", path, { status: "suspended" });
    clock.forward(5_000);
    expect((await self("PATCH", path, { status: "active" })).body).toMatchObject({ changed: true });
  });
});

describe("a tenant that is held to some job types", () => {
  it("is refused all others, by name, wherever work is made", async () => {
    const { operator, change } = await newTenant();
    const made = (await operator("POST", "/v1/schedules", SCHEDULE)).body;
    const path = `/v1/schedules/${made.scheduleId}`;
    await change({ allowedJobs: [] });
    const yesterday = { from: new Date(Date.now() - 172_800_000).toISOString(), to: new Date().toISOString() };
    for (const [method, at, body] of [
      ["POST", "/v1/schedules", SCHEDULE],
      ["PUT", path, { ...SCHEDULE, expectedRevision: 1 }],
      ["PATCH", path, { name: "Renamed", expectedRevision: 1 }],
      ["POST", "/v1/runs", { job: SCHEDULE.job }],
      ["POST", `${path}/runs`, {}],
      ["POST", `${path}/runs`, { payload: {} }],
      ["POST", `${path}/preview`, {}],
      ["POST", `${path}/backfill`, yesterday],
    ] as const) {
      const answer = await operator(method, at, body);
      expect([answer.status, answer.body.code, answer.body.job], `${method} ${at}`).toEqual([
        403,
        "job-not-allowed",
        REPORT,
      ]);
    }
    expect((await operator("GET", "/v1/job-types")).body).toEqual({ items: [] });
  });

  it("keeps its schedules, which go on being planned, and can pause and delete them", async () => {
    const { operator, change } = await newTenant();
    const made = (await operator("POST", "/v1/schedules", SCHEDULE)).body;
    const path = `/v1/schedules/${made.scheduleId}`;
    await change({ allowedJobs: [] });
    expect((await operator("GET", path)).body).toMatchObject({ status: "active", nextRunAt: made.nextRunAt });
    expect((await operator("POST", `${path}/pause`, {})).status).toBe(200);
    expect((await operator("DELETE", path)).status).toBe(200);
  });

  it("may use what is allowed, and all again once nothing is said", async () => {
    const { operator, change } = await newTenant({ allowedJobs: [REPORT] });
    expect((await operator("POST", "/v1/schedules", SCHEDULE)).status).toBe(201);
    expect((await operator("GET", "/v1/job-types")).body).toMatchObject({ items: [{ name: REPORT }] });
    await change({ allowedJobs: [] });
    expect((await operator("POST", "/v1/runs", { job: SCHEDULE.job })).status).toBe(403);
    await change({ allowedJobs: null });
    expect((await operator("POST", "/v1/runs", { job: SCHEDULE.job })).status).toBe(201);
  });

  it("may be held to kinds of jobs that it brings itself", async () => {
    const { change, operator } = await newTenant({ allowedJobs: ["http", "remote"] });
    const make = async (job: object) => (await operator("POST", "/v1/runs", { job })).status;
    const http = { kind: "http", url: "https://example.com/" };
    const remote = { kind: "remote", name: "any.name" };
    expect([await make(http), await make(remote), await make(SCHEDULE.job)]).toEqual([201, 201, 403]);
    await change({ allowedJobs: [REPORT] });
    expect([await make(http), await make(remote), await make(SCHEDULE.job)]).toEqual([403, 403, 201]);
  });

  it("is not held to what nobody registered: a typo is told, with what was meant", async () => {
    const answer = await admin("POST", "/v1/tenants", { name: "typo", allowedJobs: ["report.run-sumary"] });
    expect([answer.status, answer.body.detail]).toEqual([
      400,
      expect.stringMatching(/^allowedJobs\[0\]: found "report\.run-sumary".*did you mean "report\.run-summary"/),
    ]);
  });
});

describe("Punctual-Tenant", () => {
  it("lets an admin act for a tenant: in it, under its own name, and seen in /v1/me", async () => {
    const { tenantId, shown, operator } = await newTenant();
    const key = await server.key(platformId, "admin");
    const acting = callerOf(server, key, tenantId);
    const me = (await acting("GET", "/v1/me")).body;
    expect(me).toMatchObject({
      tenant: { tenantId: shown },
      role: "admin",
      actingFor: true,
      key: { prefix: key.slice(0, 15) },
    });
    const made = (await acting("POST", "/v1/schedules", SCHEDULE)).body;
    const path = `/v1/schedules/${made.scheduleId}`;
    expect((await operator("GET", path)).body).toMatchObject({ scheduleId: made.scheduleId });
    const revisions = (await operator("GET", `${path}/revisions`)).body as { items: { actor: string }[] };
    expect(revisions.items[0]!.actor).toBe((me.key as { keyId: string }).keyId);
    expect((await callerOf(server, key)("GET", path)).status, "without the header it is in its own tenant").toBe(404);
  });

  it("is held to the job types and the keys of the tenant it names", async () => {
    const { tenantId, change } = await newTenant();
    const acting = callerOf(server, await server.key(platformId, "admin"), tenantId);
    const made = await acting("POST", "/v1/api-keys", { label: "first", role: "owner" });
    expect((await callerOf(server, String(made.body.key))("GET", "/v1/me")).body).toMatchObject({
      tenant: { tenantId: showId("ten", tenantId) },
      role: "owner",
    });
    await change({ allowedJobs: [] });
    expect((await acting("POST", "/v1/schedules", SCHEDULE)).body.code).toBe("job-not-allowed");
  });

  it("of another tenant is forbidden to everybody else, an owner too; the own one is fine", async () => {
    const [mine, other] = [await newTenant(), await newTenant()];
    for (const role of ["owner", "operator", "viewer", "worker"] as const) {
      const key = await server.key(mine.tenantId, role);
      const refused = await callerOf(server, key, other.tenantId)("GET", "/v1/me");
      expect([refused.status, refused.body.code], role).toEqual([403, "forbidden"]);
      const own = await callerOf(server, key, mine.tenantId)("GET", "/v1/me");
      expect([own.status, own.body.actingFor], role).toEqual([200, false]);
      // Whether there is such a tenant at all is not told.
      expect((await callerOf(server, key, mintId(0, 0))("GET", "/v1/me")).body.code, role).toBe("forbidden");
    }
  });

  it("of no tenant is a 404 for an admin, and what is no id is named", async () => {
    const key = await server.key(platformId, "admin");
    const unknown = await callerOf(server, key, mintId(0, 0))("GET", "/v1/me");
    expect([unknown.status, unknown.body.code]).toEqual([404, "tenant-not-found"]);
    const response = await fetch(`${server.url}/v1/me`, {
      headers: { authorization: `Bearer ${key}`, "punctual-tenant": "acme" },
    });
    expect(await response.json()).toMatchObject({
      status: 400,
      detail: expect.stringMatching(/^Punctual-Tenant: found "acme"/),
    });
  });
});

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readId } from "../../../src/kernel/ids.ts";
import { sql } from "../../../src/store/database.ts";
import { startTestServer, type TestServer } from "../server.ts";
import { callerOf, movableClock, SCHEDULE } from "./setting.ts";

/** Where a tenant's calls may lead: what an admin says, and what is refused before anything runs. */
const clock = movableClock();
const TRAIL = sql(
  "test_outbound_trail",
  "select before, after from audit_event where tenant_id = $1 and action = 'tenant.update' order by id",
);
let server: TestServer;
let admin: ReturnType<typeof callerOf>;
let count = 0;

beforeAll(async () => {
  server = await startTestServer({ clock, outboundAllow: ["10.9.0.0/16"] });
  admin = callerOf(server, await server.key(await server.tenant("platform"), "admin"));
});
afterAll(() => server?.close());

async function newTenant(outbound?: object | null) {
  const made = (await admin("POST", "/v1/tenants", { name: `tenant ${++count}` })).body;
  const path = `/v1/tenants/${made.tenantId}`;
  const change = async (rules: object | null) => {
    const answer = await admin("PATCH", path, { outbound: rules });
    clock.forward(5_000);
    return answer;
  };
  if (outbound !== undefined) await change(outbound);
  const operator = callerOf(server, await server.key(readId("ten", String(made.tenantId))!, "operator"));
  return { path, change, operator };
}

const fieldsOf = (body: Record<string, unknown>) =>
  ((body.errors ?? []) as { field: string }[]).map((one) => one.field);
const schedule = (url: string) => ({ ...SCHEDULE, name: `${url} ${++count}`, job: { kind: "http", url }, payload: {} });

describe("a target that can be seen to lead where the tenant may not", () => {
  it.each([
    "http://127.0.0.1/",
    "http://127.1/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://[::1]/",
    "http://[::ffff:169.254.169.254]/",
    "http://localhost./",
    "http://169.254.169.254/latest/meta-data/",
    "http://10.1.2.3/",
    "http://100.64.0.1/",
    "http://[fd00::1]/",
    "file:///etc/passwd",
    "ftp://example.com/",
    "http://user:pass@example.com/",
    "https://{{payload.host}}/",
    "https://{{payload.user}}@example.com/",
    "//example.com/",
  ])("is refused when a schedule or a run is made (B55): %s", async (url) => {
    const { operator } = await newTenant();
    const made = await operator("POST", "/v1/schedules", schedule(url));
    expect([made.status, made.body.code, fieldsOf(made.body)[0]]).toEqual([400, "invalid-request", "job.url"]);
    const run = await operator("POST", "/v1/runs", { job: { kind: "http", url } });
    expect([run.status, fieldsOf(run.body)[0]]).toEqual([400, "job.url"]);
  });

  it("is refused in words that say what an operator can do; a header, by its name and without its secret", async () => {
    const { operator } = await newTenant();
    const said = async (job: object) => {
      const { body } = await operator("POST", "/v1/runs", { job: { kind: "http", ...job } });
      return String(body.detail);
    };
    expect(await said({ url: "http://10.1.2.3/" })).toMatch(
      /is not a public address; allowed: .*PUNCTUAL_OUTBOUND_ALLOW, or tenants edit --outbound-allow/,
    );
    const headers = { "X-Api-Key": "hunter2" };
    expect(await said({ url: "https://example.com/", headers })).toBe(
      'job.headers.X-Api-Key: found "…"; must have a placeholder of the payload, such as Bearer {{payload.token}}: definitions are no place for secrets',
    );
  });

  it.each([
    { broker: "amqp", exchange: "", url: "amqp://127.0.0.1" },
    { broker: "amqp", exchange: "", url: "amqps://user:{{payload.password}}@0x7f.1:5671" },
    { broker: "amqp", exchange: "", url: "amqp://[::ffff:10.0.0.1]:5672" },
    { broker: "bullmq", queue: "q", url: "redis://localhost:6379/1" },
    { broker: "bullmq", queue: "q", url: "rediss://:{{payload.password}}@169.254.169.254" },
    { broker: "bullmq", queue: "q", url: "redis://{{payload.host}}" },
    { broker: "bullmq", queue: "q", url: "http://example.com" },
  ])("is refused for a broker, too: $url", async (job) => {
    const { operator } = await newTenant();
    const made = await operator("POST", "/v1/runs", { job: { kind: "queue", ...job } });
    expect([made.status, fieldsOf(made.body)]).toEqual([400, ["job.url"]]);
  });

  it("is told without the password that somebody wrote into it", async () => {
    const { operator } = await newTenant();
    for (const url of ["amqp://user:hunter2@rabbit.example.com", `amqp://user:hunter2@${"x".repeat(3000)}`]) {
      const made = await operator("POST", "/v1/runs", { job: { kind: "queue", broker: "amqp", exchange: "", url } });
      expect([made.status, fieldsOf(made.body)]).toEqual([400, ["job.url"]]);
      expect(made.text).not.toContain("hunter2");
    }
  });

  it("says what was found and what is allowed, for webhooks as well", async () => {
    const { operator } = await newTenant({ hosts: ["api.example.com"], ports: [443] });
    const effects = [{ name: "hook", kind: "webhook", url: "https://elsewhere.example.com/x" }];
    const made = await operator("POST", "/v1/schedules", { ...schedule("https://api.example.com:8443/"), effects });
    expect(made.body.errors).toEqual([
      {
        field: "job.url",
        message: "port 8443 is none of those this tenant may reach: 443",
        found: '"api.example.com:8443"',
        allowed: "api.example.com; ports 443",
      },
      {
        field: "effects[0].url",
        message: "is none of the hosts this tenant may reach",
        found: '"elsewhere.example.com"',
        allowed: "api.example.com; ports 443",
      },
    ]);
  });

  it("is refused when it is changed to, and may stay where it was before the rules were", async () => {
    const { operator, change } = await newTenant();
    const made = await operator("POST", "/v1/schedules", schedule("https://example.com/a"));
    const path = `/v1/schedules/${made.body.scheduleId}`;
    await change({ hosts: ["example.org"] });
    const renamed = await operator("PATCH", path, { expectedRevision: 1, name: "another name" });
    expect(renamed.status).toBe(200);
    const job = { kind: "http", url: "https://example.com/b" };
    for (const [method, where] of [
      ["PATCH", path],
      ["POST", `${path}/preview`],
    ] as const) {
      const moved = await operator(method, where, { ...(method === "PATCH" ? { expectedRevision: 2 } : {}), job });
      expect([where, moved.status, fieldsOf(moved.body)[0]]).toEqual([where, 400, "job.url"]);
    }
  });
});

describe("where a tenant's calls may lead", () => {
  it("is said by an admin, shown, and followed from then on", async () => {
    const { path, change, operator } = await newTenant();
    expect((await admin("GET", path)).body).toMatchObject({ outbound: null });
    expect((await operator("POST", "/v1/schedules", schedule("http://10.2.0.1/"))).status).toBe(400);
    expect((await operator("POST", "/v1/schedules", schedule("http://10.9.0.1/"))).status).toBe(201);
    const said = await change({ allow: ["10.2.0.0/16"] });
    const outbound = { allow: ["10.2.0.0/16"], hosts: null, ports: null };
    expect(said.body).toMatchObject({ changed: true, tenant: { outbound } });
    expect((await change({ allow: ["10.2.0.0/16"] })).body).toMatchObject({ changed: false });
    expect((await admin("GET", path)).body).toMatchObject({ outbound });
    expect((await operator("POST", "/v1/schedules", schedule("http://10.2.0.1/"))).status).toBe(201);
    const trail = await server.db.query(TRAIL, [readId("ten", path.slice("/v1/tenants/".length))!]);
    expect(trail).toEqual([{ before: { outbound: null }, after: { outbound } }]);
  });

  it("is nobody else's to say, and makes sense", async () => {
    const { path, change, operator } = await newTenant();
    expect((await operator("PATCH", path, { outbound: null })).status).toBe(403);
    const { status, body } = await change({ allow: ["10.0.0.0/99"], hosts: ["https://x"], ports: [0], deny: [] });
    expect([status, fieldsOf(body).toSorted()]).toEqual([
      400,
      ["outbound.allow[0]", "outbound.deny", "outbound.hosts[0]", "outbound.ports[0]"],
    ]);
  });
});

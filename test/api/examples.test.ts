import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createJobCatalogue } from "../../src/api/job-catalogue.ts";
import { ROUTES } from "../../src/api/table.ts";
import { registerJobs } from "../../src/app/jobs.ts";
import { newMasterKey } from "../../src/app/secrets/key-list.ts";
import { createMasterKeys } from "../../src/app/secrets/master-keys.ts";
import { call, REPORT, startTestServer, type TestServer } from "./server.ts";

/** Against the jobs this program really has: what a newcomer copies must be accepted. */
let server: TestServer;
let owner: string;
const send = (method: string, path: string, body?: unknown) => call(server.url, method, path, { key: owner, body });

beforeAll(async () => {
  // B42 On one connection: a call that wants a second one while it holds the first would wait for itself.
  const keys = createMasterKeys(newMasterKey("test"));
  server = await startTestServer({ jobs: createJobCatalogue(registerJobs().jobs) }, 0, 1, keys);
  // Some of them are for admins.
  owner = await server.key(await server.tenant("acme"), "admin");
});
afterAll(() => server?.close());

describe("docs/api.md", () => {
  it("has calls that are accepted as they stand", async () => {
    const text = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");
    const calls = [...text.matchAll(/curl -s \$URL(\S+)[^\n]* -d '([^']*)'/g)];
    expect(calls).toHaveLength(text.split("curl ").length - 1);
    for (const [, path, body] of calls) {
      const answer = await send("POST", path!, body);
      expect(answer.status, answer.text).toBe(201);
    }
  });
});

describe("an example of the reference page", () => {
  it("of a body is accepted, and every route that takes fields has one", async () => {
    let made = "";
    for (const route of ROUTES) {
      if (route.body === undefined || route.path.endsWith("/cancel")) continue;
      // Of workers alone: the tests of their protocol send such bodies.
      if (route.roles !== "everybody" && !route.roles.includes("admin")) continue;
      expect(route.example, route.path).toBeDefined();
      const path = route.path.replace("{schedule}", made).replace("{calendar}", "company-holidays");
      // Of something that has to happen first: the tests of these routes send such bodies.
      if (path.includes("{")) continue;
      const answer = await send(
        route.method.toUpperCase(),
        path,
        fitted(route.path, route.method, route.example as object),
      );
      expect(answer.status, `${route.method} ${route.path}: ${answer.text}`).toBeLessThan(300);
      if (route.path === "/v1/schedules") made = String(answer.body.scheduleId);
    }
  });

  /** What is bound to its moment, as somebody who copies it would put it right. */
  function fitted(path: string, method: string, example: object): object {
    // PUT has made the second revision by then.
    if (method === "patch") return { ...example, expectedRevision: 2 };
    if (!path.endsWith("/backfill")) return example;
    const yesterday = Date.now() - 86_400_000;
    return { ...example, from: new Date(yesterday).toISOString(), to: new Date(yesterday + 3_600_000).toISOString() };
  }

  it("of an answer fits its schema", async () => {
    const document = (await call(server.url, "GET", "/openapi.json")).body;
    const { schemas } = document.components as { schemas: Record<string, { example?: unknown }> };
    const ajv = new Ajv2020({ strict: false, validateFormats: false });
    ajv.addSchema({ $id: "root", ...document });
    for (const name of [
      "Schedule",
      "ScheduleRevision",
      "SchedulePreview",
      "Run",
      "RunListItem",
      "Attempt",
      "Ledger",
      "Calendar",
      "CalendarListItem",
      "RunEffect",
      "Effect",
      "EffectDetail",
      "Operation",
      "SigningKey",
      "Webhook",
      "WebhookDelivery",
      "EmailTemplate",
      "BackfillPlan",
      "Problem",
    ]) {
      expect(schemas[name]?.example, name).toBeDefined();
      const fits = ajv.compile({ $ref: `root#/components/schemas/${name}` });
      expect(fits(schemas[name]!.example), `${name}: ${JSON.stringify(fits.errors)}`).toBe(true);
    }
    expect(JSON.stringify(document)).not.toContain(String(Number.MAX_SAFE_INTEGER));
  });
});

describe("a payload the job does not take", () => {
  const faultOf = async (payload: unknown) => {
    const answer = await send("POST", "/v1/runs", { job: REPORT, payload });
    expect([answer.status, answer.body.code]).toEqual([400, "invalid-request"]);
    return answer.body as { detail: string; errors: unknown[] };
  };

  it("is told the choices, whatever kinds they are of, and what was probably meant", async () => {
    const { detail, errors } = await faultOf({ period: "day" });
    const allowed = "last-hour, last-day, last-7-days, or an object of from, to";
    expect(errors).toEqual([
      { field: "payload.period", message: "is not one of the allowed values", found: '"day"', allowed },
    ]);
    expect(detail).toBe(`payload.period: found "day"; is not one of the allowed values; allowed: ${allowed}`);
    expect((await faultOf({ period: "last-dya" })).errors).toMatchObject([{ didYouMean: "last-day" }]);
  });

  it("is told the unknown field, at any depth, and the form of a text", async () => {
    expect((await faultOf({ perod: "last-day" })).detail).toBe(
      'payload.perod: is not a known field; allowed: period, zone, title; did you mean "period"?',
    );
    expect((await faultOf({ period: { from: "monday", to: "2026-10-01T00:00:00Z" } })).errors[0]).toMatchObject({
      field: "payload.period.from",
      found: '"monday"',
      allowed: expect.stringContaining("RFC 3339"),
    });
    expect((await faultOf({ zone: "Mars/Olympus" })).errors).toMatchObject([
      { field: "payload.zone", found: '"Mars/Olympus"', allowed: expect.stringContaining("IANA") },
    ]);
  });
});

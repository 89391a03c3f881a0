import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { calendarCases, vectorLines } from "../../domain/recurrence/support.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";

/** Whatever cannot be scheduled is refused before anything is stored, by preview and create alike, in words that help. */

type Refused = { name: string; expr: string; tz: string; readings: readonly object[] };
type SyntaxVector = { id: string; expr: string; tz: string; verdict: string };

const fromVectors = vectorLines<SyntaxVector>("cron-syntax.jsonl")
  .filter((row) => row.verdict === "reject")
  .map(({ id, expr, tz }) => ({
    name: `${id} ${JSON.stringify(expr)} in ${JSON.stringify(tz)}`,
    expr,
    tz,
    // Six fields mean seconds in a vector; without the switch they are one field too many.
    readings: expr.trim().split(/\s+/).length === 6 ? [{}, { seconds: true }] : [{}],
  }));
const all: readonly Refused[] = [...fromVectors, ...calendarCases().refused.map((one) => ({ ...one, readings: [{}] }))];

const FIELDS = ["second", "minute", "hour", "day-of-month", "month", "day-of-week", "expression", "zone"];

let server: TestServer;
let owner: string;
const send = (path: string, body: unknown) => call(server.url, "POST", path, { key: owner, body });

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(async () => {
  const listed = await call(server.url, "GET", "/v1/schedules", { key: owner });
  expect(listed.body.items, "nothing was stored").toEqual([]);
  await server.close();
});

describe("a rule that cannot be scheduled", () => {
  it("is among many", () => expect(all.length).toBeGreaterThan(60));

  it.each(all)("$name", async ({ expr, tz, readings }) => {
    for (const choice of readings) {
      const rule = { kind: "cron", expression: expr, zone: tz, ...choice };
      const [previewed, created] = await Promise.all([
        send("/v1/schedules/preview", { rule }),
        send("/v1/schedules", { name: "never", rule, job: REPORT }),
      ]);
      for (const answer of [previewed, created]) {
        expect([answer.status, answer.body.code], answer.text).toEqual([400, "invalid-rule"]);
        const errors = answer.body.errors as { field: string; message: string; found: string; allowed: string }[];
        expect(errors.length).toBeGreaterThan(0);
        for (const { field, message, found, allowed } of errors) {
          expect(FIELDS).toContain(field.replace(/^rule\./, ""));
          expect(message.length).toBeGreaterThan(3);
          expect(allowed.length).toBeGreaterThan(3);
          expect(isPartOf(found, [expr, tz]), `${found} is a part of what was sent`).toBe(true);
          expect(answer.body.detail).toContain(field === errors[0]!.field ? field : "");
        }
      }
      expect(created.body.errors).toEqual(previewed.body.errors);
    }
  });

  it("may not name an instant further ahead than windows and deadlines can be counted on from, or before all calendars", async () => {
    const zone = "Asia/Tokyo";
    for (const [rule, field] of [
      [{ kind: "once", at: "9999-12-01T00:00:00.001Z" }, "rule.at"],
      [{ kind: "once", at: "9999-12-31T23:59:59-23:59" }, "rule.at"],
      [{ kind: "once", at: "9999-12-01T09:00:01", zone }, "rule.at"],
      [{ kind: "dates", at: ["2090-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"] }, "rule.at"],
      [{ kind: "interval", everyMs: 1000, anchorAt: "9999-12-31T23:59:59Z" }, "rule.anchorAt"],
      [{ kind: "interval", everyMs: 1000, anchorAt: Date.UTC(10_000, 0, 1) }, "rule.anchorAt"],
      [{ kind: "anyOf", rules: [{ kind: "once", at: "9999-12-02T00:00:00Z" }] }, "rule.rules.0.at"],
    ] as const) {
      for (const path of ["/v1/schedules/preview", "/v1/schedules"]) {
        const answer = await send(path, path.endsWith("s") ? { name: "never", rule, job: REPORT } : { rule });
        expect([answer.status, answer.body.code], answer.text).toEqual([400, "invalid-rule"]);
        expect(answer.body.errors).toMatchObject([{ field, allowed: "9999-12-01T00:00:00Z or earlier" }]);
      }
    }
    for (const rule of [
      { kind: "once", at: "0000-01-01T00:00:00+23:59" },
      { kind: "interval", everyMs: 1000, anchorAt: Date.UTC(-1, 0, 1) },
    ]) {
      const answer = await send("/v1/schedules/preview", { rule });
      expect(answer.body.errors, answer.text).toMatchObject([{ allowed: "0000-01-01T00:00:00Z or later" }]);
    }
    const last = { kind: "once", at: "9999-12-01T09:00:00", zone };
    const previewed = await send("/v1/schedules/preview", { rule: last, windowMs: 86_400_000 });
    expect(previewed.body.instants, previewed.text).toMatchObject([{ at: "9999-12-01T00:00:00Z" }]);
  });

  it("nor may it begin so far ahead", async () => {
    const field = "startAt";
    const rule = { kind: "afterCompletion", delayMs: 1000 };
    const found = "9999-12-31T23:59:59-23:59";
    for (const path of ["/v1/schedules/preview", "/v1/schedules"]) {
      const answer = await send(path, {
        rule,
        [field]: found,
        ...(path.endsWith("s") ? { name: "never", job: REPORT } : {}),
      });
      expect([answer.status, answer.body.code], answer.text).toEqual([400, "invalid-request"]);
      expect(answer.body.errors).toEqual([
        {
          field,
          message: "no schedule goes on so far ahead",
          found: JSON.stringify(found),
          allowed: "9999-12-01T00:00:00Z or earlier",
        },
      ]);
    }
  });

  it("of another kind names its field too", async () => {
    const zone = "UTC";
    const expression = "0 9 * * *";
    for (const [rule, field] of [
      [{ kind: "interval", anchorAt: 0 }, "rule.everyMs"],
      [{ kind: "interval", everyMs: 1000, anchorAt: "soon" }, "rule.anchorAt"],
      [{ kind: "once", at: "2090-02-30T00:00:00Z" }, "rule.at"],
      [{ kind: "dates", at: ["2090-01-01T09:00"] }, "rule.at"],
      [{ kind: "anyOf", rules: [{ kind: "cron", expression: "0 25 * * *", zone }] }, "rule.rules.0.hour"],
      [{ kind: "cron", expression, zone: "PST" }, "rule.zone"],
      [{ kind: "cron", expression }, "rule.zone"],
      [{ kind: "cron", expression, zone, second: true }, "rule.second"],
      [{ kind: "crone", expression, zone }, "rule.kind"],
      [{ kind: "cron", expression, zone, gap: "sideways" }, "rule.gap"],
    ] as const) {
      const previewed = await send("/v1/schedules/preview", { rule });
      const created = await send("/v1/schedules", { name: "never", rule, job: REPORT });
      for (const answer of [previewed, created]) {
        expect(answer.status, answer.text).toBe(400);
        expect(answer.body.errors).toMatchObject([{ field }]);
      }
    }
  });
});

it("the vectors hold no refusal that this table left out", () => {
  const text = readFileSync(new URL("../../vectors/cron-syntax.jsonl", import.meta.url), "utf8");
  expect(fromVectors).toHaveLength(text.split('"verdict": "reject"').length - 1);
});

/** What was found is quoted from what was sent: in its case or in upper case, whole or its beginning. */
function isPartOf(found: string, sent: readonly string[]): boolean {
  const token = (JSON.parse(found) as string).replace(/…$/, "").toUpperCase();
  return sent.some((text) => text.toUpperCase().includes(token));
}

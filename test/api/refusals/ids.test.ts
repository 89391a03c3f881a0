import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ROUTES } from "../../../src/api/table.ts";
import { type IdKind, mintId, showId } from "../../../src/kernel/ids.ts";
import { call, REPORT, startTestServer, type TestServer } from "../server.ts";

/** What looks like an id and can be nobody's: its instant lies after the years that can be kept. */
let server: TestServer;
let owner: string;

beforeAll(async () => {
  server = await startTestServer();
  owner = await server.key(await server.tenant("acme"), "owner");
});
afterAll(() => server?.close());

const KINDS: Readonly<Record<string, IdKind>> = {
  run: "run",
  schedule: "sch",
  operation: "op",
  effect: "eff",
  key: "key",
  signingKey: "sgk",
  webhook: "whk",
  tenant: "ten",
};
const FAR = ["7zzzzzzzzzzzzzzzzzzzzzzzzz", showId("run", mintId(Date.UTC(10_000, 0, 1), 0)).slice("run_".length)];

const taking = ROUTES.flatMap((route) => {
  const kind = KINDS[/\{(\w+)\}/.exec(route.path)?.[1] ?? ""];
  return kind === undefined ? [] : [{ name: `${route.method} ${route.path}`, route, kind }];
});

describe("an id from after the year 9999 is as unknown as any", () => {
  it("by every kind of id", () => {
    expect(new Set(taking.map((one) => one.kind))).toEqual(new Set(Object.values(KINDS)));
  });

  it.each(taking)("$name", async ({ route, kind }) => {
    const send = async (id: string) => {
      const path = route.path
        .replace(/\{(run|schedule|operation|effect|key|signingKey|webhook|tenant)\}/, id)
        .replace(/\{(revision|delivery)\}/, "1");
      const query = Object.entries({
        expires: "1",
        signature: "x",
        from: "2026-11-29T00:00:00Z",
        to: "2026-11-30T00:00:00Z",
      })
        .filter(([name]) => name in route.query.shape)
        .map(([name, value]) => `${name}=${value}`);
      const body = route.body === undefined ? undefined : (route.example ?? {});
      return call(server.url, route.method.toUpperCase(), `${path}?${query.join("&")}`, {
        key: owner,
        body,
        headers: { "if-match": '"1"' },
      });
    };
    const unknown = await send(showId(kind, mintId(Date.now(), 0)));
    expect([403, 404], unknown.text).toContain(unknown.status);
    for (const digits of FAR) {
      const { status, body, text } = await send(`${kind}_${digits}`);
      expect([status, body.code], text).toEqual([unknown.status, unknown.body.code]);
    }
  });

  it.each(["runs", "dead-letters", "effects", "operations"])("as a filter of %s", async (list) => {
    const ask = (id: string) => call(server.url, "GET", `/v1/${list}?scheduleId=${id}`, { key: owner });
    const unknown = await ask(showId("sch", mintId(Date.now(), 0)));
    expect(unknown.status, unknown.text).toBe(200);
    // Nothing is asked for it, so that it is told from an id whose schedule may have been.
    for (const digits of FAR) expect((await ask(`sch_${digits}`)).status).toBe(404);
  });
});

/** The last that a schema for instants lets through, and what lies in the year 0000 by UTC. */
it.each(["9999-12-31T23:59:59.999-23:59", "0000-01-01T00:00:00+23:59"])(
  "an instant such as %s is no fault of ours",
  async (text) => {
    const [from, to] = text.startsWith("9") ? ["2026-11-29T00:00:00Z", text] : [text, "2026-11-30T00:00:00Z"];
    const made = await call(server.url, "POST", "/v1/schedules", {
      key: owner,
      body: { name: "x", rule: { kind: "afterCompletion", delayMs: 1 }, job: REPORT },
    });
    for (const route of ROUTES.filter((one) => "from" in one.query.shape)) {
      const path = route.path.replace("{schedule}", String(made.body.scheduleId)).replace("{revision}", "1");
      for (const asked of [{ from, to }, { from: text, to: text }, { from: text }, { to: text }]) {
        const sent = Object.entries(asked).filter(([name]) => name in route.query.shape);
        const query = new URLSearchParams(sent as [string, string][]);
        const answer = await call(server.url, "GET", `${path}?${query}`, { key: owner });
        expect(answer.status, `${path}?${query} ${answer.text}`).toBeLessThan(500);
      }
    }
  },
);

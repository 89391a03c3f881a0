import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, startTestServer, type TestServer } from "./server.ts";

let server: TestServer;
const gate = Promise.withResolvers<void>();
const arrived = Promise.withResolvers<void>();
beforeAll(async () => {
  server = await startTestServer({
    health: {
      components: async () => [],
      async readiness() {
        arrived.resolve();
        await gate.promise;
        return { ready: false, reasons: ["PostgreSQL: start it"] };
      },
    },
  });
});
afterAll(() => server?.close());

describe("the listening API", () => {
  it("that finds its port taken says so, and what to do", async () => {
    await expect(startTestServer({}, Number(new URL(server.url).port))).rejects.toMatchObject({
      code: "port-taken",
      actor: "operator",
      message: expect.stringContaining("choose another port"),
    });
  });

  it("answers what is under way before it closes, and nothing after", async () => {
    const underWay = call(server.url, "GET", "/readyz");
    await arrived.promise;
    const closing = server.close();
    gate.resolve();
    const answer = await underWay;
    expect([answer.status, answer.body.reasons]).toEqual([503, ["PostgreSQL: start it"]]);
    await closing;
    await expect(fetch(`${server.url}/healthz`)).rejects.toThrow();
  });
});

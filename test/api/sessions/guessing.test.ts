import { afterEach, beforeEach, expect, it } from "vitest";
import { createCallLimits } from "../../../src/hints/call-limits.ts";
import { systemClock } from "../../../src/kernel/clock.ts";
import { call, startTestServer, type TestServer } from "../server.ts";
import { signIn } from "./browser.ts";

let server: TestServer;
beforeEach(async () => {
  server = await startTestServer({ callLimits: createCallLimits({ redis: undefined, clock: systemClock }) });
});
afterEach(() => server?.close());

const keyOf = (n: number) => `pk_${String(n).padStart(12, "0")}_${"0".repeat(43)}`;
const WAYS: Record<string, (key: string) => Promise<{ status: number; body: { code?: unknown } }>> = {
  "the form": (key) =>
    call(server.url, "POST", "/sign-in", {
      body: new URLSearchParams({ key }).toString(),
      headers: { "content-type": "application/x-www-form-urlencoded", origin: server.url },
    }),
  "the body of a call": (key) => call(server.url, "POST", "/v1/session", { body: { key } }),
};

for (const [way, guess] of Object.entries(WAYS)) {
  it(`keys are guessed by ${way} no faster than elsewhere`, async () => {
    const answers = await Promise.all(Array.from({ length: 61 }, (_, n) => guess(keyOf(n))));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    const blocked = await guess(keyOf(99));
    expect([blocked.status, blocked.body.code]).toEqual([429, "too-many-failures"]);
  });
}

it("a key that was good by one way is good by every other, also where its address guesses", async () => {
  const key = await server.key(await server.tenant("acme"), "owner");
  expect((await call(server.url, "GET", "/v1/me", { key })).status).toBe(200);
  await Promise.all(Array.from({ length: 61 }, (_, n) => WAYS["the form"]!(keyOf(n))));
  expect((await WAYS["the body of a call"]!(keyOf(99))).status).toBe(429);
  expect((await WAYS["the form"]!(key)).status).toBe(303);
  expect((await WAYS["the body of a call"]!(key)).status).toBe(201);
});

it("a page that is left open with a session that has ended locks nobody out", async () => {
  const key = await server.key(await server.tenant("acme"), "owner");
  const { cookie } = await signIn(server.url, key);
  const ended = { cookie: `${cookie}x` };
  const polls = Array.from({ length: 70 }, () => call(server.url, "GET", "/v1/runs", { headers: ended }));
  expect(new Set((await Promise.all(polls)).map(({ status }) => status))).toEqual(new Set([401]));
  const fresh = await server.key(await server.tenant("umbrella"), "owner");
  expect((await signIn(server.url, fresh)).cookie).not.toBe(cookie);
});

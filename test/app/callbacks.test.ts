import { expect, it } from "vitest";
import { readConfig } from "../../src/app/config.ts";
import { issueCallbacks } from "../../src/app/kinds/callbacks.ts";
import { createCallbackTokens } from "../../src/domain/jobs/callback-token.ts";
import { readId } from "../../src/kernel/ids.ts";
import { TENANT, testContext } from "../handlers/context.ts";

const SECRET = "a secret for tests of callbacks";
const RUN = "run_01kct0v2mz8h3bmq5d0v5x2c9r";
const configOf = (change = {}) => readConfig({ PUNCTUAL_DIR: "/nowhere", ...change });

function runOf() {
  const ctx = testContext();
  ctx.run.id = RUN;
  return ctx.run;
}

it("a pass leads to the API as it is reached from outside, and is good for one attempt until it ends", () => {
  const issue = issueCallbacks(configOf({ PUNCTUAL_SECRET: SECRET }), () => "https://punctual.example.com/api/");
  const pass = issue(runOf(), 1_800_000_000_000);
  expect(pass.url).toBe("https://punctual.example.com/api/v1/worker");
  const subject = { tenantId: TENANT, runId: readId("run", RUN), attempt: 1, fence: 1n };
  expect(createCallbackTokens(SECRET).read(pass.token, 1_800_000_000_000)).toMatchObject(subject);
  expect(createCallbackTokens(SECRET).read(pass.token, 1_800_000_061_000)).toBeUndefined();
});

it.each([
  [{ PUNCTUAL_SECRET: SECRET }, undefined, "PUNCTUAL_PUBLIC_URL"],
  [{}, "https://punctual.example.com", "PUNCTUAL_SECRET"],
])("without what it takes the run fails for good, and says what the operator has not set", (settings, url, missing) => {
  const issue = issueCallbacks(configOf(settings), () => url);
  expect(() => issue(runOf(), 1_800_000_000_000)).toThrow(
    expect.objectContaining({
      code: "callback-unavailable",
      transient: false,
      message: expect.stringContaining(missing),
    }),
  );
});

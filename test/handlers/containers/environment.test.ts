import { expect, it } from "vitest";
import type { Payload } from "../../../src/domain/definition.ts";
import { containerJobSchema } from "../../../src/domain/jobs/container.ts";
import { environmentOf } from "../../../src/handlers/containers/environment.ts";
import { testContext } from "../context.ts";

/** What a container is started with, in so far as no engine is needed to see it. */
const JOB = containerJobSchema.parse({ kind: "container", image: "app:1" });
const environment = (fields: Partial<typeof JOB>, payload: Payload) =>
  environmentOf(testContext(), { ...JOB, ...fields }, payload);
const large = { a: "x".repeat(60_000) };
const many = "{{payload}}".repeat(700);

// Definitions from when nobody counted placeholders: today's have a hundred.
it.each([
  ["env.A", { env: { A: "a", B: "b" }, command: ["c"] }, "env.A", { A: many }],
  ["env.E4", {}, "env.E4", Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`E${i}`, "{{payload}}"]))],
])("%s is where it would become too much, and there it ends", (_field, fields, place, env) => {
  expect(() => environment({ ...fields, env }, large)).toThrow(
    expect.objectContaining({
      transient: false,
      code: "container-not-startable",
      message: `${place}: as filled in, env, command and args together would have more than 262144 bytes`,
    }),
  );
});

it.each([
  ["command[1]", { command: ["sh", many], args: ["x"] }],
  ["args[2]", { command: ["{{payload}}"], args: ["{{payload}}", "{{payload}}", many] }],
])("%s shares the room with the others", (place, fields) => {
  expect(() => environment(fields, large)).toThrow(
    expect.objectContaining({
      transient: false,
      code: "container-not-startable",
      message: expect.stringContaining(place),
    }),
  );
});

it("what the worker says of the attempt needs none of the job's room", () => {
  const texts = { A: "{{payload.a}}", B: "{{payload.a}}", C: "{{payload.a}}", D: "{{payload.a}}" };
  const { env } = environment({ env: texts }, large);
  expect([env.A, env.PUNCTUAL_PAYLOAD]).toEqual([large.a, JSON.stringify(large)]);
});

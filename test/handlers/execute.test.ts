import { expect, it } from "vitest";
import { z } from "zod";
import type { Payload } from "../../src/domain/definition.ts";
import type { JobContext, JobResult } from "../../src/handlers/context.ts";
import { executeHandler } from "../../src/handlers/execute.ts";
import { runFunctions } from "../../src/handlers/kinds.ts";
import { permanentFailure, transientFailure } from "../../src/handlers/outcome.ts";
import { createRegistry, defineJob } from "../../src/handlers/registry.ts";
import { demoNoop } from "../support/noop-job.ts";
import { testContext } from "./context.ts";

const input = z.strictObject({
  period: z.union([
    z.enum(["last-hour", "last-day"]),
    z.strictObject({ from: z.iso.datetime(), to: z.iso.datetime() }),
  ]),
  title: z.string().max(5).optional(),
});
const echo = defineJob({
  name: "report.echo",
  version: 2,
  input,
  run: async (ctx, { title }) => {
    ctx.progress({ half: true });
    return { output: { name: "echo.txt", mediaType: "text/plain", bytes: Buffer.from(title ?? "untitled") } };
  },
});
const kinds = { function: runFunctions(createRegistry([echo, demoNoop])) };
const job = { kind: "function", name: "report.echo", version: 2 } as const;

/** Runs one attempt of a job whose body is `run`. */
function attempt(run: (ctx: JobContext) => Promise<JobResult> | JobResult, ctx = testContext()) {
  const only = createRegistry([defineJob({ name: "t", version: 1, input: z.unknown(), run })]);
  return executeHandler({ function: runFunctions(only) }, { kind: "function", name: "t", version: 1 }, ctx, {});
}

it("a job's returned bytes are staged and become the outcome's output", async () => {
  const ctx = testContext();
  const outcome = await executeHandler(kinds, job, ctx, { period: "last-hour", title: "hello" });
  expect(outcome).toMatchObject({ kind: "succeeded", output: { name: "echo.txt", uri: "fs:test/echo.txt", size: 5 } });
  expect(ctx.staged).toEqual([{ name: "echo.txt", mediaType: "text/plain", text: "hello" }]);
  expect(ctx.shown).toEqual([{ half: true }]);
});

it("a job that staged its output itself returns it, and it is not staged twice", async () => {
  const ctx = testContext();
  const outcome = await attempt(async ({ output }) => ({ output: await output("a", Buffer.from("a"), "x/y") }), ctx);
  expect(outcome).toMatchObject({ kind: "succeeded", output: { name: "a" } });
  expect(ctx.staged).toHaveLength(1);
});

it("a job without output succeeds without an object", async () => {
  expect(await executeHandler(kinds, { kind: "function", name: "demo.noop", version: 1 }, testContext(), {})).toEqual({
    kind: "succeeded",
  });
});

it.each([
  [{ name: "report.ehco", version: 2 }, "No job is called report.ehco@2 here; did you mean report.echo?"],
  [{ name: "report.echo", version: 9 }, "No job is called report.echo@9 here; its versions are 2"],
  [{ name: "mail", version: 1 }, "No job is called mail@1 here; there are report.echo, demo.noop"],
  [{ name: "constructor", version: 1 }, "No job is called constructor@1 here; there are report.echo, demo.noop"],
])("an unknown job fails for good and says what there is instead: %j", async (unknown, message) => {
  const outcome = await executeHandler(kinds, { kind: "function", ...unknown }, testContext(), {});
  expect(outcome).toEqual({ kind: "failed", transient: false, code: "job-unknown", message });
});

it.each([
  [
    { period: "yesterday" },
    'period: found "yesterday"; allowed: Invalid option: expected one of "last-hour"|"last-day", or',
  ],
  [
    { period: { from: "noon", to: "2026-01-01T00:00:00Z" } },
    'period.from: found "noon"; allowed: Invalid ISO datetime',
  ],
  [{ period: "last-day", title: "too long" }, 'title: found "too long"; allowed: Too big'],
  [{ period: "last-day", titel: "x" }, 'allowed: Unrecognized key: "titel"'],
  [{}, "period: found nothing; allowed: "],
  [null, "the payload: found null; allowed: "],
  [{ period: "x".repeat(9999) }, `period: found "${"x".repeat(79)}…; allowed: `],
])("a payload that does not fit fails for good and names field, found and allowed: %.60j", async (payload, message) => {
  expect(await executeHandler(kinds, job, testContext(), payload as Payload)).toMatchObject({
    kind: "failed",
    transient: false,
    code: "job-input-invalid",
    message: expect.stringContaining(message),
  });
});

it("a job says itself whether trying again can help, and when", async () => {
  const busy = await attempt(() => {
    throw transientFailure("upstream-busy", "429", { retryAfterMs: 1500.2 });
  });
  expect(busy).toEqual({ kind: "failed", transient: true, code: "upstream-busy", message: "429", retryAfterMs: 1501 });
  const gone = await attempt(() => Promise.reject(permanentFailure("no-account", "closed")));
  expect(gone).toEqual({ kind: "failed", transient: false, code: "no-account", message: "closed" });
});

it.each([
  [new Error("boom"), "boom"],
  ["a string", "a string"],
  [undefined, "undefined"],
  [new Error(""), "The job failed without a message"],
  [Object.create(null), "The job threw something that cannot be shown"],
  [new Error("NUL \0 and \uD800"), "NUL \uFFFD and \uFFFD"],
])("anything else that is thrown is a transient handler-error with storable text: %s", async (thrown, message) => {
  const outcome = await attempt(() => {
    throw thrown;
  });
  expect(outcome).toEqual({ kind: "failed", transient: true, code: "handler-error", message });
});

it.each([
  ["an HTTP status as code", transientFailure(503 as never, "upstream"), { code: "503", message: "upstream" }],
  ["no code", transientFailure(undefined as never, "upstream"), { code: "handler-error", message: "upstream" }],
  ["a code that throws", transientFailure({ toString: null } as never, "x"), { code: "handler-error", message: "x" }],
  ["a proxy", hostileProxy(), { code: "handler-error", message: "The job threw something that cannot be shown" }],
  ["no message", Object.assign(new Error(), { message: 7n }), { message: "The job failed without a message" }],
])("whatever a job throws, it is its own failure and nobody else's: %s", async (_, thrown, told) => {
  const outcome = await attempt(() => {
    throw thrown;
  });
  expect(outcome).toMatchObject({ kind: "failed", transient: true, ...told });
});

function hostileProxy(): object {
  const no = () => {
    throw new Error("no");
  };
  return new Proxy({}, { getPrototypeOf: no, get: no });
}

it("an error message of any length is bounded", async () => {
  const outcome = await attempt(() => Promise.reject(new Error("📈".repeat(50_000))));
  expect(outcome).toMatchObject({ message: expect.stringMatching(/^(📈)+ …$/u) });
  expect((outcome as { message: string }).message.length).toBeLessThanOrEqual(4000);
});

it("an output that cannot be staged is a failed attempt, also when its bytes are made while they are read", async () => {
  async function* bytes() {
    yield Buffer.from("first page");
    throw transientFailure("reader-broke", "page 2");
  }
  const outcome = await attempt(() => ({ output: { name: "a", mediaType: "x/y", bytes: bytes() } }));
  expect(outcome).toEqual({ kind: "failed", transient: true, code: "reader-broke", message: "page 2" });
});

it("a job that honours the abort ends as aborted; it is not begun when the abort came first", async () => {
  const stop = new AbortController();
  const outcome = attempt(
    ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        stop.abort(new Error("lease lost"));
      }),
    testContext({ signal: stop.signal }),
  );
  expect(await outcome).toEqual({ kind: "failed", transient: true, code: "aborted", message: "lease lost" });

  let begun = false;
  const never = await attempt(
    () => {
      begun = true;
    },
    testContext({ signal: stop.signal }),
  );
  expect(never).toMatchObject({ code: "aborted" });
  expect(begun).toBe(false);
});

it("a job that ignores the abort is waited for, and may still have succeeded", async () => {
  const stop = new AbortController();
  const finish = Promise.withResolvers<void>();
  let settled = false;
  const outcome = attempt(() => finish.promise, testContext({ signal: stop.signal })).finally(() => {
    settled = true;
  });
  stop.abort(new Error("deadline"));
  await new Promise((resolve) => setImmediate(resolve));
  expect(settled).toBe(false);
  finish.resolve();
  expect(await outcome).toEqual({ kind: "succeeded" });
});

it("two jobs of one name and version are refused when the registry is made", () => {
  const message = "Two jobs have the same name and version: report.echo@2";
  // Whose fault it is decides whether a stack is printed.
  expect(() => createRegistry([echo, echo])).toThrow(expect.objectContaining({ message, actor: "operator" }));
});

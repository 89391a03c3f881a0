import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { JobContext } from "../../src/handlers/context.ts";
import { executeHandler } from "../../src/handlers/execute.ts";
import { runFunctions } from "../../src/handlers/kinds.ts";
import { createRegistry } from "../../src/handlers/registry.ts";
import { createThreadPool } from "../../src/handlers/threads/pool.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { createMetrics } from "../../src/kernel/metrics.ts";
import { RUN_AT, testContext } from "../handlers/context.ts";
import { simulatePrices } from "./prices-job.ts";
import { fetchStatement } from "./statement-job.ts";
import { codeIn, root, tableIn } from "./table.ts";

const asked: { path: string; key: string | undefined }[] = [];
const bank = createServer((request, response) => {
  asked.push({ path: request.url!, key: request.headers["idempotency-key"] as string });
  const account = /^\/(\w+)/.exec(request.url!)![1]!;
  const status = { gone: 404, busy: 429, broken: 500 }[account] ?? 200;
  if (account === "slow") return;
  response.writeHead(status, { "retry-after": "90" }).end("date,amount\n");
});

beforeAll(() => once(bank.listen(0, "127.0.0.1"), "listening"));
afterAll(() => {
  bank.closeAllConnections();
  bank.close();
});

function fetchFor(payload: Record<string, unknown>, ctx = testContext()) {
  const { port } = bank.address() as AddressInfo;
  const job = { kind: "function", name: "statement.fetch", version: 1 } as const;
  return executeHandler({ function: runFunctions(createRegistry([fetchStatement])) }, job, ctx, {
    bank: `http://127.0.0.1:${port}`,
    ...payload,
  });
}

it("docs/jobs.md quotes the examples that are run here word for word", () => {
  const quotes = readFileSync(`${root}/docs/jobs.md`, "utf8").matchAll(/```ts\n([\s\S]*?)```/g);
  const examples = ["statement-job.ts", "prices-job.ts", "simulate-prices.ts"].map((name) =>
    readFileSync(`${root}/test/docs/${name}`, "utf8").replaceAll("../../src/", "../"),
  );
  const quoted = [...quotes].map(([, quote]) => quote);
  expect(quoted).toEqual(expect.arrayContaining(examples));
});

it("docs/jobs.md says everything that a context has, and nothing else", () => {
  const documented = tableIn("docs/jobs.md", "in `ctx`").flatMap(([name]) => codeIn(name));
  const { staged: _staged, shown: _shown, captured: _captured, ...context } = testContext();
  const ctx: JobContext = context;
  const names = Object.keys(ctx).flatMap((name) =>
    name === "run" ? Object.keys(ctx.run).map((one) => `run.${one}`) : [name],
  );
  expect(documented.map((name) => name.replace(/\(.*/, "").replace("read.runsBetween", "read")).toSorted()).toEqual(
    names.toSorted(),
  );
});

it("the example returns the bank's answer as its output, asking under the run key for the nominal instant", async () => {
  const ctx = testContext();
  expect(await fetchFor({ account: "ann" }, ctx)).toMatchObject({
    kind: "succeeded",
    output: { name: "statement.csv" },
  });
  expect(ctx.staged).toEqual([{ name: "statement.csv", mediaType: "text/csv", text: "date,amount\n" }]);
  expect(asked.at(-1)).toEqual({ path: `/ann?until=${new Date(RUN_AT).toISOString()}`, key: ctx.run.id });
});

it("the example fails for good, for later, for the moment, and for a payload that is not its own", async () => {
  expect(await fetchFor({ account: "gone" })).toMatchObject({
    kind: "failed",
    transient: false,
    code: "no-such-account",
  });
  expect(await fetchFor({ account: "busy" })).toMatchObject({
    transient: true,
    code: "bank-busy",
    retryAfterMs: 90_000,
  });
  expect(await fetchFor({ account: "broken" })).toMatchObject({ transient: true, code: "handler-error" });
  expect(await fetchFor({})).toMatchObject({ transient: false, code: "job-input-invalid" });
});

it("the example stops when its signal does", async () => {
  const stop = new AbortController();
  const ended = fetchFor({ account: "slow" }, testContext({ signal: stop.signal }));
  await once(bank, "request");
  stop.abort("canceled");
  expect(await ended).toMatchObject({ kind: "failed", transient: true, code: "aborted" });
});

it("the example that computes does so in a thread, the same in every attempt", async () => {
  const threads = createThreadPool({
    clock: systemClock,
    log: silentLog,
    metrics: createMetrics(),
    size: 1,
    memoryMb: 128,
  });
  const kinds = { function: runFunctions(createRegistry([simulatePrices]), { threads }) };
  const job = { kind: "function", name: "prices.simulate", version: 1 } as const;
  const payload = { price: 100, volatility: 0.02, paths: 20_000 };
  const [first, second] = [testContext(), testContext()];
  for (const ctx of [first, second])
    expect(await executeHandler(kinds, job, ctx, payload)).toMatchObject({ kind: "succeeded" });
  await threads.stop();
  expect(first.staged[0]!.text).toMatch(/^p05,p50,p95\n\d+\.\d\d,\d+\.\d\d,\d+\.\d\d\n$/);
  expect(second.staged).toEqual(first.staged);
  expect(first.shown).toEqual([{ paths: 0 }, { paths: 10_000 }]);
});

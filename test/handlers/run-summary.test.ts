import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import type { Payload } from "../../src/domain/definition.ts";
import { executeHandler } from "../../src/handlers/execute.ts";
import { CSV_ROWS_LIMIT, runSummary } from "../../src/handlers/jobs/run-summary.ts";
import { runFunctions } from "../../src/handlers/kinds.ts";
import { createRegistry } from "../../src/handlers/registry.ts";
import type { RunSummaryRow } from "../../src/handlers/run-reader.ts";
import { RUN_AT, TENANT, testContext } from "./context.ts";
import { mixedRuns, runRow } from "./runs.ts";

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const MINUTE_MS = 60_000;
const kinds = { function: runFunctions(createRegistry([runSummary])) };
const job = { kind: "function", name: "report.run-summary", version: 1 } as const;

async function report(payload: unknown, pages: () => Iterable<readonly RunSummaryRow[]> = () => []) {
  const ctx = testContext({ pages });
  const outcome = await executeHandler(kinds, job, ctx, payload as Payload);
  expect(outcome).toMatchObject({
    kind: "succeeded",
    output: { name: "report.html", mediaType: "text/html; charset=utf-8" },
  });
  const page = ctx.staged[0]!.text;
  const csv = Buffer.from(/base64,([A-Za-z0-9+/=]*)"/.exec(page)![1]!, "base64").toString("utf8");
  return { page, csv, lines: csv.split("\r\n").slice(0, -1), ctx };
}

it("asks for the tenant's own runs of the period that ends at the run's nominal instant, whenever it is executed", async () => {
  const asked: unknown[] = [];
  const ctx = testContext();
  ctx.read = {
    runsBetween(...args) {
      asked.push(args);
      return testContext().read.runsBetween(...args);
    },
  };
  for (const period of [
    "last-hour",
    "last-7-days",
    { from: "2026-11-01T00:00:00+01:00", to: "2026-11-02T00:00:00Z" },
  ]) {
    expect(await executeHandler(kinds, job, ctx, { period })).toMatchObject({ kind: "succeeded" });
  }
  expect(asked).toEqual([
    [TENANT, RUN_AT - 60 * MINUTE_MS, RUN_AT],
    [TENANT, RUN_AT - 7 * 24 * 60 * MINUTE_MS, RUN_AT],
    [TENANT, Date.UTC(2026, 9, 31, 23), Date.UTC(2026, 10, 2)],
  ]);
});

it("an empty payload is a report on the last day in UTC", async () => {
  const { page } = await report({});
  expect(page).toContain("<h1>Run summary</h1>");
  expect(page).toMatch(/28 Nov 2026, 18:00\s–\s29 Nov 2026, 18:00 · UTC/);
});

it("an empty period is a report that says so, with a CSV of headings only", async () => {
  const { page, lines } = await report({ period: "last-hour" });
  expect(page).toContain("No runs in this period.");
  expect(page).not.toContain("<svg");
  expect(page).toMatch(/<\/html>\n$/);
  expect(lines).toEqual([expect.stringMatching(/^\uFEFFrun_id,schedule_id,schedule,/)]);
});

it("counts every run once: in the figures, in the bars, in its schedule's row", async () => {
  const pages = () => mixedRuns(4000, 24 * 60 * MINUTE_MS, 300);
  const rows = [...pages()].flat();
  const count = (state: string) => rows.filter((run) => run.state === state).length;
  const { page, lines, ctx } = await report({ period: "last-day", zone: "America/New_York" }, pages);
  expect(page).toContain("<dt>Runs</dt><dd>4,000</dd>");
  for (const state of ["succeeded", "failed", "canceled", "skipped"]) {
    expect(page).toContain(`${state} ${count(state).toLocaleString("en-GB")}</li>`);
    const inBars = [...page.matchAll(new RegExp(`(\\d+) ${state}[^<]*</title>`, "g"))].reduce(
      (n, m) => n + Number(m[1]),
      0,
    );
    expect(inBars, state).toBe(count(state));
  }
  expect(page.match(/<td class="name">Nightly export<\/td><td class="number">800<\/td>/g)).toHaveLength(1);
  expect(lines).toHaveLength(4001);
  expect(ctx.shown.at(-1)).toEqual({ runs: 4000 });
});

it("writes the reader's local times", async () => {
  const { page } = await report({ period: "last-hour", zone: "Asia/Kolkata" }, () => [[runRow(RUN_AT - MINUTE_MS)]]);
  expect(page).toContain("29 Nov 2026, 23:29:00");
  expect(page).toContain("· Asia/Kolkata");
});

const HOSTILE = [
  "<script>alert(1)</script>",
  '"><img src=x onerror=alert(1)>',
  "'; drop table run; --",
  "NUL \0 bell \u0007",
  "lone \uD800 surrogate",
  "📈 emoji, naïve",
  "</title><svg onload=alert(1)>",
  "\u202Eright to left",
];

it.each(HOSTILE)("a hostile name is text everywhere: %j", async (name) => {
  const failed = { state: "failed", errorCode: name, errorMessage: name } as const;
  const { page, csv } = await report({ period: "last-hour", title: name }, () => [
    [runRow(RUN_AT - MINUTE_MS, { scheduleName: name, ...failed })],
  ]);
  expect(page).not.toMatch(/<script|<img|<svg onload/i);
  expect(page.match(/<title>[^<]*<\/title>/g)!.length).toBeGreaterThan(1);
  expect(page.match(/<title>/g)).toHaveLength(page.match(/<\/title>/g)!.length);
  for (const control of ["\0", "\u0007"]) expect(page).not.toContain(control);
  expect(page.isWellFormed()).toBe(true);
  const harmless = name.toWellFormed().replaceAll("\0", "\uFFFD").replaceAll("\u0007", "\uFFFD");
  const escaped = harmless.replace(
    /[&<>"']/g,
    (c) => `&${{ "&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "#39" }[c]};`,
  );
  expect(page.split(escaped).length).toBeGreaterThanOrEqual(5); // title, heading, schedule, error, slowest
  expect(csv.split("\r\n")).toHaveLength(3);
});

it("a name that a spreadsheet would compute is written as text, and quotes and line breaks stay in their cell", async () => {
  const names = ['=HYPERLINK("http://evil")', "@SUM(A1)", 'a "quoted", name\r\nof two lines'];
  const { csv } = await report({ period: "last-hour" }, () => [
    names.map((scheduleName) => runRow(RUN_AT - 1, { scheduleName })),
  ]);
  expect(csv).toContain(`,"'=HYPERLINK(""http://evil"")",`);
  expect(csv).toContain(",'@SUM(A1),");
  expect(csv).toContain(',"a ""quoted"", name\r\nof two lines",');
});

it("needs nothing from the network, runs no script, and forbids both", async () => {
  const { page } = await report({ period: "last-day" }, () => mixedRuns(500, 24 * 60 * MINUTE_MS));
  expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
  expect(page).toContain("prefers-color-scheme: dark");
  expect(page.match(/(src|href)="(?!data:text\/csv)/g)).toBeNull();
  expect(page).not.toMatch(/<script|<link|@import|url\(|NaN|undefined|Infinity/);
});

it("10,000 runs and more pass through without being kept: each page can be collected while the next is read", async () => {
  const alive: WeakRef<RunSummaryRow[]>[] = [];
  let mostAlive = 0;
  function* watched() {
    for (const page of mixedRuns(20_000, 7 * 24 * 60 * MINUTE_MS, 500)) {
      alive.push(new WeakRef(page));
      yield page;
    }
  }
  const stop = new AbortController();
  const ctx = testContext({ signal: stop.signal });
  ctx.read = {
    async *runsBetween() {
      for (const page of watched()) {
        yield page;
        await new Promise((resolve) => setImmediate(resolve)); // WeakRefs are held until the turn ends
        collectGarbage();
        mostAlive = Math.max(mostAlive, alive.filter((ref) => ref.deref() !== undefined).length);
      }
    },
  };
  expect(await executeHandler(kinds, job, ctx, { period: "last-7-days" })).toMatchObject({ kind: "succeeded" });
  expect(alive).toHaveLength(40);
  expect(mostAlive).toBeLessThanOrEqual(4);
});

it("a CSV too large for a browser is cut, and the report says so while its figures stay whole", async () => {
  const total = CSV_ROWS_LIMIT + 1500;
  const { page, lines } = await report({ period: "last-day" }, () => mixedRuns(total, 24 * 60 * MINUTE_MS, 7777));
  expect(lines).toHaveLength(CSV_ROWS_LIMIT + 1);
  expect(page).toContain("The CSV holds the first 50,000 of 51,500 runs.");
  expect(page).toContain("<dt>Runs</dt><dd>51,500</dd>");
});

it("stops between two pages when the attempt is aborted", async () => {
  const stop = new AbortController();
  let pages = 0;
  function* endless() {
    for (;;) {
      if (++pages === 3) stop.abort(new Error("lease lost"));
      yield [runRow(RUN_AT - MINUTE_MS)];
    }
  }
  const outcome = await executeHandler(kinds, job, testContext({ pages: endless, signal: stop.signal }), {});
  expect(outcome).toMatchObject({ kind: "failed", code: "aborted", message: "lease lost" });
  expect(pages).toBe(3);
});

it.each([
  [{ period: "last-year" }, "period", "last-7-days"],
  [{ period: { from: "2026-02-02T00:00:00Z", to: "2026-01-01T00:00:00Z" } }, "period", "`from` lies before `to`"],
  [{ period: { from: "2024-01-01T00:00:00Z", to: "2026-01-01T00:00:00Z" } }, "period", "366 days"],
  [{ zone: "Mars/Olympus" }, 'zone: found "Mars/Olympus"', "IANA"],
  [{ title: "" }, "title", ">=1"],
])("a payload it cannot report on is refused for good, with what is allowed: %j", async (payload, field, allowed) => {
  const outcome = await executeHandler(kinds, job, testContext(), payload);
  expect(outcome).toMatchObject({
    transient: false,
    code: "job-input-invalid",
    message: expect.stringContaining(field),
  });
  expect(outcome).toMatchObject({ message: expect.stringContaining(allowed) });
});

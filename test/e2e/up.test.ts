import { afterAll, expect, inject, test } from "vitest";
import { redisAvailable } from "../support/redis.ts";
import { until } from "../support/system.ts";
import { endAll, type Installation, makePlace, type Place, startInstallation } from "./installation.ts";

// The tests run side by side, for most of them wait.
const places: Place[] = [];

afterAll(async () => {
  await endAll();
  for (const place of places) place.remove();
});

function newPlace(redisBinary: string): Place {
  const place = makePlace(redisBinary);
  places.push(place);
  return place;
}

async function createReport(system: Installation): Promise<string> {
  const response = await system.post("/v1/schedules", {
    name: "Often",
    key: "often",
    rule: { kind: "interval", everyMs: 2_000, anchorAt: 0 },
    job: { kind: "function", name: "report.run-summary", version: 1 },
    payload: { period: "last-hour", title: "As often as that" },
  });
  expect(response.status).toBe(201);
  return ((await response.json()) as { scheduleId: string }).scheduleId;
}

type RunItem = { runId: string; state: string; scheduledAt: string };

async function succeededRuns(system: Installation, schedule: string): Promise<RunItem[]> {
  const page = await (await system.get(`/v1/schedules/${schedule}/runs?state=succeeded`)).json();
  expect(page).toHaveProperty("items");
  return (page as { items: RunItem[] }).items;
}

/** The result of a run, as a browser would open it. */
async function download(system: Installation, runId: string): Promise<string> {
  const link = (await (await system.get(`/v1/runs/${runId}/result`)).json()) as { url: string; mediaType: string };
  expect(link.mediaType).toMatch(/^text\/html/);
  const response = await fetch(link.url);
  expect(response.status).toBe(200);
  return response.text();
}

/** From nothing to a result, and down again without a trace but the data. */
async function tryOut(system: Installation): Promise<{ schedule: string; runs: RunItem[] }> {
  expect(system.line("API")).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
  expect(system.line("Key")).toMatch(/^pk_/);
  expect(system.line("Next")).toContain("Run summary, every minute");
  expect((await fetch(system.line("Docs"))).status).toBe(200);
  const schedule = await createReport(system);
  await until("a run has succeeded", async () => (await succeededRuns(system, schedule)).length > 0);
  const runs = await succeededRuns(system, schedule);
  const page = await download(system, runs[0]!.runId);
  expect(page).toMatch(/^<!doctype html>/i);
  expect(page).toContain("As often as that");
  return { schedule, runs };
}

if (redisAvailable) {
  test.concurrent("npm start on an empty machine: a schedule's result can be opened, Ctrl-C leaves no process, the next start goes on", async () => {
    const place = newPlace(inject("redisBinary"));
    const first = await startInstallation(place);
    const { schedule, runs } = await tryOut(first);

    const board = await fetch(first.line("Bull Board"), { redirect: "manual" });
    expect(board.status).toBe(303);
    const cookie = board.headers.getSetCookie()[0]!.split(";")[0]!;
    const page = await fetch(new URL("/queues", first.line("API")), { headers: { cookie } });
    const [, tenant] = /href="(\/queues\/ten_\w+)">demo</.exec(await page.text())!;
    const shown = await fetch(new URL(tenant!, first.line("API")), { headers: { cookie } });
    expect(await shown.text()).toContain("demo: hints");
    const queues = await fetch(new URL(`${tenant}/api/queues`, first.line("API")), { headers: { cookie } });
    expect(JSON.stringify(await queues.json())).toContain('"displayName":"short"');

    expect(await first.interrupt()).toEqual([]);
    expect(await first.exited).toBe(0);
    expect(first.lines.at(-1)).toBe("Stopped.");

    const second = await startInstallation(place);
    expect(second.line("Key")).toBe(first.line("Key"));
    await until("it goes on", async () => {
      const now = await succeededRuns(second, schedule);
      return now[0]!.scheduledAt > runs[0]!.scheduledAt;
    });
    expect(await download(second, runs[0]!.runId)).toContain("As often as that");
    expect(await second.interrupt()).toEqual([]);
  }, 180_000);

  test.concurrent("two installations run side by side; a port that is taken is named, and nothing is left running", async () => {
    const [one, two] = await Promise.all([0, 1].map(() => startInstallation(newPlace(inject("redisBinary")))));
    expect(new Set([one!.line("API"), two!.line("API"), one!.line("Key"), two!.line("Key")]).size).toBe(4);
    await createReport(one!);
    expect(await (await two!.get("/v1/schedules/key:often")).status).toBe(404);

    const port = Number(new URL(one!.line("API")).port);
    const third = await startInstallation(newPlace(inject("redisBinary")), port);
    expect(await third.exited).toBe(1);
    expect(third.lines.join("\n")).toContain(`Port ${port} of 127.0.0.1 is taken by another program`);
    expect(await one!.interrupt()).toEqual([]);
    expect(await two!.interrupt()).toEqual([]);
  }, 180_000);
}

test.concurrent("without redis-server on PATH the same works on PostgreSQL alone, and says so", async () => {
  const system = await startInstallation(newPlace(""));
  expect(system.lines.join("\n")).toContain("No redis-server on PATH: work is taken straight from PostgreSQL");
  expect(system.line("Bull Board")).toContain("needs Redis");
  await tryOut(system);
  expect((await system.get("/queues")).status).toBe(503);
  expect(await system.interrupt()).toEqual([]);
}, 180_000);

import { readFileSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { readId } from "../../../src/kernel/ids.ts";
import { startUp, type Up } from "./punctual.ts";

let up: Up;
let db: pg.Pool;

// Nobody serves class memory here: what is replayed stays queued.
beforeAll(async () => {
  up = await startUp({ PUNCTUAL_SLOTS_MEMORY: "0" });
  db = new pg.Pool({ connectionString: readFileSync(join(up.directory, "database-url"), "utf8").trim() });
});
afterAll(async () => {
  await db.end();
  expect(await up.stop()).toBe(0);
  up.remove();
});

/** A run that a worker has given up, as its rows say it. */
async function givenUp(fingerprint: string): Promise<string> {
  const job = { kind: "function", name: "report.run-summary", version: 1 };
  const response = await fetch(`${up.url}/v1/runs`, {
    method: "POST",
    headers: { authorization: `Bearer ${up.key}`, "content-type": "application/json" },
    body: JSON.stringify({ job, class: "memory", payload: { period: "last-hour" } }),
  });
  const { runId } = (await response.json()) as { runId: string };
  const id = readId("run", runId);
  await db.query("delete from outbox where $1::uuid = any(runs)", [id]);
  await db.query("delete from live_run where id = $1", [id]);
  await db.query(
    `with given as (update run set state = 'failed', finished_at = clock_timestamp(), attempts = 1, error_code = 'odd',
                           started_at = clock_timestamp() where id = $1 returning *)
     insert into dead_letter (run_id, scheduled_at, tenant_id, class, reason, fingerprint, attempts, error_code, error_message,
                              created_at)
     select id, scheduled_at, tenant_id, class, 'permanent', $2, 1, 'odd', 'an odd thing', clock_timestamp() from given`,
    [id, fingerprint],
  );
  return runId;
}

test("none is told as such", async () => {
  expect(await up.run("dead-letters", "list")).toMatchObject({ exitCode: 0, err: "No dead letters here.\n" });
});

test("what was given up is listed and grouped", async () => {
  const run = await givenUp("f00d");
  const listed = await up.run("dead-letters", "list", "--fingerprint", "f00d");
  expect(listed.out).toMatch(new RegExp(`^${run} +open .* permanent +report\\.run-summary@1 +odd: an odd thing$`, "m"));
  const grouped = await up.run("dead-letters", "groups", "--fingerprint", "f00d");
  expect(grouped.out).toMatch(new RegExp(`^f00d +1 +0 .* ${run} +report\\.run-summary@1 +odd: an odd thing$`, "m"));
});

test("one is replayed by its id, with the reason, and shown with what was decided", async () => {
  const run = await givenUp("one");
  const replayed = await up.run("dead-letters", "replay", run, "--note", "mended");
  expect(replayed.out).toMatch(/ is queued; follow it: punctual runs watch run_/);
  const shown = await up.run("dead-letters", "show", run);
  expect(shown.out).toMatch(/^run is +queued$/m);
  expect(shown.out).toMatch(/^payload +\{"period":"last-hour"\}$/m);
  expect(shown.out).toMatch(/^payload is +its own$/m);
  expect(shown.out, "by the label of the key").toMatch(/^replayed .* demo +mended +permanent$/m);
  expect(await up.run("dead-letters", "replay", run)).toMatchObject({
    exitCode: 1,
    err: "punctual: The run is queued: only a failed one can be replayed\n",
  });
});

test("one is dismissed by its id", async () => {
  const run = await givenUp("two");
  expect((await up.run("dead-letters", "dismiss", run, "--note", "old")).out).toMatch(
    / is dismissed; it stays failed$/m,
  );
  expect((await up.run("dead-letters", "list", "--state", "dismissed")).out).toContain(run);
});

test("many are only counted, until --run; then they are an operation that can be followed", async () => {
  await givenUp("many");
  await givenUp("many");
  const dry = await up.run("dead-letters", "replay", "--all", "--fingerprint", "many", "--pace", "1");
  expect(dry.out).toMatch(/^dead letters +2$/m);
  expect(dry.out).toMatch(/^would be +replayed 2$/m);
  expect(dry.out).toMatch(/^takes +2 s at this pace$/m);
  expect(dry.out).toMatch(/^Nothing was changed; --run does it\.$/m);
  const done = await up.run(
    "dead-letters",
    "replay",
    "--all",
    "--fingerprint",
    "many",
    "--note",
    "mended",
    "--run",
    "--watch",
  );
  expect(done.exitCode).toBe(0);
  expect(done.out).toMatch(/^op_\w+ +done +2 of 2/m);
});

test("many are dismissed the same way", async () => {
  await givenUp("bulk");
  const done = await up.run("dead-letters", "dismiss", "--all", "--fingerprint", "bulk", "--run", "--watch");
  expect(done.out).toMatch(/ done +1 of 1/);
});

test.each([
  [["replay"], "name a run, or say --all"],
  [["replay", "run_x", "--all"], "name a run or say --all; found both, and one of them is too much"],
  [["replay", "run_x", "--pace", "3"], "--pace: is for --all; one run is named by its id alone"],
  [["replay", "--all", "--watch"], "--watch: needs --run; without it there is nothing to follow"],
])("%j says too little or too much, and is told so; exit code 2", async (args, sentence) => {
  const { exitCode, err } = await up.run("dead-letters", ...args);
  expect([exitCode, err.split("\n")[0]]).toEqual([2, `punctual: ${sentence}`]);
});

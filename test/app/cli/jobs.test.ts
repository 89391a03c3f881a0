import { randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/system.ts";
import { startUp, type Up } from "./punctual.ts";

/** What commands say of jobs that are no functions of ours, and of who does them. */
let up: Up;
beforeAll(async () => {
  up = await startUp();
});
afterAll(async () => {
  expect(await up.stop()).toBe(0);
  up.remove();
});

async function made(...args: string[]) {
  const { out, err } = await up.run(...args, "--json");
  expect(err).toBe("");
  return JSON.parse(out) as Record<string, string>;
}
/** Lines with one colon between columns. */
const linesOf = (out: string) => out.split("\n").map((one) => one.replaceAll(/ {2,}/g, ": "));
const schedule = (key: string, job: unknown, ...more: string[]) =>
  made(
    ...["schedules", "create", "--name", key, "--schedule-key", key, "--cron", "0 0 1 1 *", "--tz", "Etc/UTC"],
    ...["--job", typeof job === "string" ? job : JSON.stringify(job), ...more],
  );

const CALL = {
  kind: "http",
  url: "https://api.example.com/{{payload.id}}/500?full=1",
  headers: { authorization: "Bearer {{payload.token}}", "x-team": "a" },
  timeoutMs: 5000,
};

test("an edit of a job without a name says which of its fields differ, thought of and done", async () => {
  await schedule("call", CALL);
  const job = { ...CALL, url: "https://api.example.com/ok", headers: { "x-team": "b" } };
  const edit = ["schedules", "edit", "key:call", "--job", JSON.stringify(job), "--payload", '{"id":7}'];
  const dry = await up.run(...edit, "--dry-run");
  const edited = await up.run(...edit);
  const rows = [
    "FIELD: WAS: IS",
    "job.url: https://api.example.com/{{payload.id}}/500?full=1: https://api.example.com/ok",
    "job.headers.authorization: Bearer {{payload.token}}: –",
    "job.headers.x-team: a: b",
  ];
  expect(linesOf(dry.out)).toEqual(expect.arrayContaining([...rows, "payload.id: –: 7", "Nothing was changed."]));
  expect(linesOf(edited.out)).toEqual(
    expect.arrayContaining(["Changed key:call: revision 2", ...rows, 'payload: {}: {"id":7}']),
  );
  expect(dry.out + edited.out).not.toMatch(/Nothing is different|job\.timeoutMs/);
  const other = await up.run("schedules", "edit", "key:call", "--job", "remote:report.monthly@2");
  expect(linesOf(other.out)).toEqual(
    expect.arrayContaining([
      "job: http POST https://api.example.com/ok: remote:report.monthly@2",
      'job.headers: {"x-team":"b"}: –',
    ]),
  );
});

test("a schedule shows every field of its job that somebody has chosen", async () => {
  await schedule("called", CALL);
  const shown = linesOf((await up.run("schedules", "get", "key:called")).out);
  expect(shown).toEqual(
    expect.arrayContaining([
      "job: http POST https://api.example.com/{{payload.id}}/500",
      `job.url: ${CALL.url}`,
      `job.headers: ${JSON.stringify(CALL.headers)}`,
      "job.timeoutMs: 5000 (5 s)",
    ]),
  );
  expect(shown.filter((one) => one.startsWith("job."))).toHaveLength(3);
  const url = "amqps://app:{{payload.password}}@broker.example.com";
  const listed = (await up.run("schedules", "list")).out;
  expect(listed).toMatch(/^key:called .* http POST https:\/\/api\.example\.com\/\{\{payload\.id\}\}\/500$/m);
  await schedule("told", { kind: "queue", broker: "amqp", url, exchange: "orders", routingKey: "new", vhost: "shop" });
  expect(linesOf((await up.run("schedules", "get", "key:told")).out)).toEqual(
    expect.arrayContaining([
      "job: queue amqp orders new @broker.example.com:5671",
      `job.url: ${url}`,
      "job.vhost: shop",
    ]),
  );
});

test("runs say what they are, as defined; what failed says it among the dead letters", async () => {
  const job = { kind: "http", method: "GET", url: "https://api.example.com/{{payload.id}}?key={{payload.key}}" };
  // What its path needs is not given, so that it fails before it calls anybody.
  const { runId } = await made("runs", "create", "--job", JSON.stringify(job), "--payload", '{"key":"k"}');
  expect((await up.run("runs", "watch", runId!, "--timeout", "60")).exitCode).toBe(3);
  const words = "http GET https://api.example.com/{{payload.id}}";
  expect(linesOf((await up.run("runs", "get", runId!)).out)).toEqual(
    expect.arrayContaining([`job: ${words}`, `job.url: ${job.url}`]),
  );
  expect((await up.run("dead-letters", "list")).out).toMatch(new RegExp(`^${runId} .*  ${words}  `, "m"));
  expect((await up.run("dead-letters", "groups")).out).toMatch(new RegExp(`  ${runId}  ${words}  `));
  expect(linesOf((await up.run("dead-letters", "show", runId!)).out)).toContain(`job.url: ${job.url}`);
  // Lists show what was made some seconds ago.
  const listed = async () => (await up.run("runs", "list")).out;
  await until("it is listed", async () => (await listed()).includes(runId!));
  expect(await listed()).toMatch(new RegExp(`^${runId} .*  ${words}$`, "m"));
});

async function say(key: string, verb: string, body: unknown): Promise<Record<string, unknown>> {
  const answer = await fetch(`${up.url}/v1/worker/${verb}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(answer.status, await answer.clone().text()).toBe(200);
  return (await answer.json()) as Record<string, unknown>;
}

test("a remote run that nobody does says whom it waits for; with a worker, how far that is, and that it gave it away", async () => {
  const shown = async () => linesOf((await up.run("runs", "get", runId!)).out);
  const { runId } = await made("runs", "create", "--job", "remote:report.monthly@1");
  expect(await shown()).toContain("waits for: a worker that does report.monthly@1 (none was heard of lately)");
  const watched = await up.run("runs", "watch", runId!, "--timeout", "1");
  expect(watched.out).toMatch(
    /^run_\w+ {2}queued .* waits for a worker that does report\.monthly@1 \(none was heard of lately\)$/m,
  );
  const { key } = (await made("keys", "create", "--label", "w", "--role", "worker")) as { key: string };
  const { hints } = await say(key, "poll", { worker: "paris", jobs: ["report.monthly@1"] });
  expect((await shown()).filter((one) => one.startsWith("waits"))).toEqual([]);
  expect((await up.run("workers", "list")).out).toMatch(/^paris +own +remote=1 .* remote:report\.monthly@1$/m);
  const granted = await say(key, "claim", { worker: "paris", claimId: randomUUID(), hints });
  const { attempt, fence } = (granted.grants as { attempt: number; fence: string }[])[0]!;
  const mine = { runId, attempt, fence, worker: "paris" };
  await say(key, "progress", { ...mine, progress: { pages: 7 } });
  expect(await shown()).toContain('progress: {"pages":7}');
  await say(key, "detach", mine);
  const detached = await shown();
  expect(detached).toContainEqual(
    expect.stringMatching(/^detached: with somebody else, callback due by \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ$/),
  );
  expect(detached).toContain('progress: {"pages":7}');
});

test("workers are listed by a command of their own; the role takes no argument", async () => {
  expect((await up.run("workers", "list")).out).toMatch(/^WORKER +KIND .* JOBS\n[\s\S]* installation +\w+=\d+ /);
  const mistaken = await up.run("worker", "list");
  expect([mistaken.exitCode, mistaken.err]).toEqual([2, expect.stringContaining("too many arguments")]);
});

test("files of email templates are named with @ or without, and durations of webhooks have units", async () => {
  const file = join(up.directory, "monthly.txt");
  writeFileSync(file, "The month is over.\n");
  for (const named of [`@${file}`, file]) {
    const put = await up.run("email-templates", "put", "monthly", "--subject", "Month", "--text", named);
    expect([put.exitCode, put.err]).toEqual([0, ""]);
  }
  const hook = ["webhooks", "create", "https://hooks.example.com/", "--event", "run.late", "--late-after"];
  expect((await up.run(...hook, "15m")).out).toMatch(/^late after +15 min$/m);
  expect((await up.run(...hook, "90000")).out).toMatch(/^late after +90 s$/m);
  expect((await up.run(...hook, "soon")).err).toMatch(/^punctual: --late-after: found "soon"; allowed: .* such as 15m/);
  expect((await up.run(...hook, "9d")).err).toMatch(/^punctual: lateAfterMs \(--late-after\): /);
  expect((await up.run(...hook.with(4, "run.fialed"), "1m")).err).toMatch(/^punctual: events\[0\] \(--event\): /);
});

test("a doctor that could look at nothing says so, and what it would need", async () => {
  const { exitCode, out } = await up.run("doctor", "--only", "containers");
  expect(exitCode).toBe(2);
  expect(out).toMatch(
    /^skipped .*no container engine is configured in this shell: set the same PUNCTUAL_CONTAINER_… as the workers/,
  );
  expect(out).toMatch(/^Nothing was checked\.$/m);
});

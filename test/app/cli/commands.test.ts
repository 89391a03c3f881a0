import { createHash, randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../../support/system.ts";
import { punctual, startUp, type Up } from "./punctual.ts";

let up: Up;

// Nobody serves class memory here, so its runs stay queued until a test ends them.
beforeAll(async () => {
  up = await startUp({ PUNCTUAL_SLOTS_MEMORY: "0" });
});

afterAll(async () => {
  expect(await up.stop()).toBe(0);
  expect(existsSync(join(up.directory, "url")), "its whereabouts are gone with it").toBe(false);
  expect(existsSync(join(up.directory, "database-url"))).toBe(false);
  up.remove();
});

async function post(path: string, body: unknown = {}): Promise<Record<string, string>> {
  const response = await fetch(up.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${up.key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(response.ok).toBe(true);
  return (await response.json()) as Record<string, string>;
}

const REPORT = { kind: "function", name: "report.run-summary", version: 1 };
const runReport = () => post("/v1/runs", { job: REPORT, payload: { period: "last-hour" } });
const runThatWaits = () => post("/v1/runs", { job: REPORT, class: "memory", payload: { period: "last-hour" } });

test("the list of schedules shows the demo's, each next run in the zone of its rule", async () => {
  const { out, exitCode } = await up.run("schedules", "list");
  expect(exitCode).toBe(0);
  expect(out).toMatch(/^SCHEDULE +NAME +STATUS +RULE +NEXT RUN +JOB\n/);
  expect(out).toMatch(
    /key:sales-report +.* active +0 9 \* \* 1-5 America\/New_York +\d{4}-\d\d-\d\d 09:00:00 -0[45]:00 America\/New_York/,
  );
  expect(out).toMatch(/key:run-summary .* \+00:00 Etc\/UTC/);
});

test("--json prints what the API answers, one line, page by page", async () => {
  const first = await up.run("schedules", "list", "--json", "--limit", "1");
  expect(first.out.trim().split("\n")).toHaveLength(1);
  const page = JSON.parse(first.out);
  expect(page.items).toHaveLength(1);
  const second = JSON.parse((await up.run("schedules", "list", "--json", "--after", page.next)).out);
  expect(second.items.map((one: { key: string }) => one.key)).not.toContain(page.items[0].key);
});

const CREATE = [
  "schedules",
  "create",
  "--cron",
  "0 9 * * 1-5",
  "--tz",
  "America/New_York",
  "--job",
  "report.run-summary@1",
];

test("a created schedule says when it runs next and can be shown by its key", async () => {
  const made = await up.run(
    ...CREATE,
    ...["--name", "Sales \u001b[31mred", "--payload", '{"period":"last-day"}', "--schedule-key", "mine"],
    ...["--label", "team=sales", "--label", "tier=1"],
  );
  expect(made.err).toBe("");
  expect(made.out).toMatch(/^Created sch_[0-9a-z]{26}\n/);
  expect(made.out).toMatch(/09:00:00 -0[45]:00 America\/New_York/);
  const shown = await up.run("schedules", "get", "key:mine");
  expect(shown.out).toMatch(/^labels +team=sales tier=1$/m);
  expect(shown.out, "a terminal obeys what it prints").toMatch(/^name +Sales \\u001b\[31mred$/m);
  const listed = JSON.parse((await up.run("schedules", "list", "--label", "team=sales", "--json")).out);
  expect(listed.items).toMatchObject([{ key: "mine", payload: { period: "last-day" } }]);
});

test("a refusal of the API is told in its own words, with the field; exit code 1", async () => {
  const zone = await up.run(
    ...CREATE.with(5, "America/New_Yorck"),
    "--name",
    "x",
    "--payload",
    '{"period":"last-day"}',
  );
  expect(zone.err).toMatch(/^punctual: rule\.zone \(--tz\): .*New_Yorck.*America\/New_York/);
  expect(zone.err).not.toMatch(/\.[;)]/);
  expect(zone.exitCode).toBe(1);
  const large = await up.run(...CREATE, "--name", "x", "--payload", '{"n":9007199254740993}');
  expect(large.err, "sent as typed, not rounded on the way").toMatch(
    /^punctual: payload\.n \(--payload\): the integer is beyond 2\^53-1/,
  );
  const two = await up.run(...CREATE, "--name", "x", "--class", "huge", "--schedule-key", "");
  expect(two.err).toMatch(/^punctual: class \(--class\): .*found: "huge"; allowed: short/m);
  expect(two.err, "every field, not the first alone").toMatch(/^punctual: key \(--schedule-key\): /m);
  const none = await up.run("schedules", "get", "key:none", "--json");
  expect(none).toMatchObject({ exitCode: 1, out: "" });
  expect(JSON.parse(none.err)).toMatchObject({ error: { code: "not-found", status: 404, retryable: false } });
  const key = await up.run("schedules", "list", "--key", "pk_wrong");
  expect(key.err).toMatch(/API key[\s\S]*--key, PUNCTUAL_KEY/);
});

test("an edit changes what is given and nothing else, and says first what it would do", async () => {
  await up.run(...CREATE, "--name", "edited", "--payload", '{"period":"last-day"}', "--schedule-key", "edited");
  const edit = ["schedules", "edit", "key:edited", "--cron", "0 10 * * 1-5"];
  const dry = await up.run(...edit, "--dry-run");
  expect(dry.out).toMatch(/^vanishes +.* 09:00:00[\s\S]*^appears +.* 10:00:00[\s\S]*Nothing was changed\.\n$/m);
  const edited = JSON.parse((await up.run(...edit, "--set", '{"notes":"later"}', "--json")).out);
  expect(edited).toMatchObject({ revision: 2, name: "edited", notes: "later", payload: { period: "last-day" } });
  expect(edited.rule).toEqual({ kind: "cron", expression: "0 10 * * 1-5", zone: "America/New_York" });
  const late = await up.run("schedules", "edit", "key:edited", "--name", "x", "--revision", "1");
  expect(late.err).toMatch(/found 1; the schedule is at revision 2/);
});

test("a schedule shows every field that somebody has chosen, effects first; an edit answers with what it changed", async () => {
  const chosen = {
    overlap: { policy: "allow", limit: 3 },
    retry: { maxAttempts: 7 },
    misfire: { policy: "all" },
    attemptTimeoutMs: 90_000,
    priority: "late",
    windowMs: 60_000,
    pauseOnFailure: true,
    effects: [{ name: "crm", kind: "webhook", url: "https://crm.example.com/hooks", onUncertain: "resend" }],
  };
  const made = await up.run(
    ...CREATE,
    ...["--name", "chosen", "--payload", '{"period":"last-day"}', "--schedule-key", "chosen"],
    ...["--set", JSON.stringify(chosen)],
  );
  expect(made.err).toBe("");
  const lines = (await up.run("schedules", "get", "key:chosen")).out
    .split("\n")
    .map((one) => one.replace(/ {2,}/, ": "));
  expect(lines).toEqual(
    expect.arrayContaining([
      'effect crm: webhook {"url":"https://crm.example.com/hooks","onUncertain":"resend"}',
      'overlap: {"policy":"allow","limit":3}',
      'retry: {"maxAttempts":7}',
      'misfire: {"policy":"all"}',
      "attemptTimeoutMs: 90000 (90 s)",
      "windowMs: 60000 (1 min)",
      "priority: late",
      "pauseOnFailure: true",
    ]),
  );
  expect(lines.findIndex((one) => one.startsWith("effect"))).toBeLessThan(
    lines.findIndex((one) => one.startsWith("retry")),
  );
  const usual = (await up.run("schedules", "get", "key:sales-report")).out;
  expect(usual, "what nobody has chosen says nothing").not.toMatch(
    /^(retry|misfire|overlap|attemptTimeoutMs|runIfPast) /m,
  );

  const retry = JSON.stringify({ retry: { maxAttempts: 9 }, effects: null, notes: "for Ann" });
  const edited = await up.run("schedules", "edit", "key:chosen", "--set", retry, "--tz", "Etc/UTC");
  expect(edited.out.split("\n").map((one) => one.replaceAll(/ {2,}/g, ": "))).toEqual(
    expect.arrayContaining([
      "Changed key:chosen: revision 2",
      "FIELD: WAS: IS",
      "rule: 0 9 * * 1-5 America/New_York: 0 9 * * 1-5 Etc/UTC",
      'retry: {"maxAttempts":7}: {"maxAttempts":9}',
      expect.stringMatching(/^effect crm: webhook .*"resend"\}: –$/),
      "notes: –: for Ann",
    ]),
  );
  expect(edited.out).not.toMatch(/^(payload|overlap|misfire) /m);
  const again = await up.run("schedules", "edit", "key:chosen", "--set", '{"notes":"for Ann"}');
  expect(again.out).toBe("Changed key:chosen: revision 3\nNothing is different.\n");
});

test("a run without a schedule is made, and canceled", async () => {
  const create = ["runs", "create", "--job", "report.run-summary@1", "--class", "memory"];
  const made = JSON.parse((await up.run(...create, "--payload", '{"period":"last-hour"}', "--json")).out);
  expect((await up.run("runs", "cancel", made.runId)).out).toBe(`Canceled ${made.runId}\n`);
});

test("a schedule is paused, resumed, run now and deleted by its key", async () => {
  await up.run(...CREATE, "--name", "changing", "--payload", '{"period":"last-day"}', "--schedule-key", "changing");
  expect((await up.run("schedules", "pause", "key:changing")).out).toBe("Paused key:changing\n");
  expect((await up.run("schedules", "pause", "key:changing")).out).toBe("key:changing was paused already\n");
  expect((await up.run("schedules", "resume", "key:changing", "--misfire", "skip")).out).toMatch(
    /^Resumed key:changing; next run: \d{4}-/,
  );
  const made = JSON.parse((await up.run("schedules", "run", "key:changing", "--json")).out);
  expect(await up.run("runs", "watch", made.runId)).toMatchObject({ exitCode: 0 });
  expect(await up.run("schedules", "delete", "key:changing")).toMatchObject({
    exitCode: 0,
    out: "Deleted key:changing; waiting runs canceled: 0\n",
  });
  expect(await up.run("schedules", "run", "key:changing")).toMatchObject({ exitCode: 1, out: "" });
});

test("a watch says what it waits for, and that its time is up; a list says that it is empty", async () => {
  await up.run(...CREATE, "--name", "Rare", "--payload", '{"period":"last-day"}', "--schedule-key", "rare");
  const watched = await up.run("runs", "watch", "--schedule", "key:rare", "--timeout", "8");
  expect(watched).toMatchObject({ exitCode: 6, out: "" });
  expect(watched.err).toMatch(
    /^Looking for a run made in the last seconds …\nWaiting for the next run \(due \d{4}-\d\d-\d\d \d\d:00:00Z, Rare\)\nNo run yet after 8 s \(exit code 6\)\.\n$/,
  );
  expect(await up.run("runs", "list", "--schedule", "key:rare")).toEqual({
    exitCode: 0,
    out: "",
    err: "No runs match.\n",
  });
});

test("past instants of a schedule are shown, then run, and the work can be followed and ended", async () => {
  const made = await up.run(
    ...["schedules", "create", "--cron", "0 0 * * *", "--tz", "Etc/UTC", "--job", "report.run-summary@1"],
    ...["--name", "Past", "--payload", '{"period":"last-day"}', "--schedule-key", "past"],
  );
  expect(made.err).toBe("");
  const day = 86_400_000;
  const midnight = Math.floor(Date.now() / day) * day;
  const [from, to] = [3, 0].map((ago) => new Date(midnight - ago * day).toISOString()) as [string, string];
  const range = ["--from", from, "--to", to];
  const shown = await up.run("schedules", "backfill", "key:past", ...range);
  expect(shown).toMatchObject({ exitCode: 0, err: "" });
  expect(shown.out).toMatch(/^become runs +3$/m);
  expect(shown.out).toMatch(/^found +unrecorded 3$/m);
  expect(shown.out).toMatch(/^INSTANT \(UTC\) +WAS +REASON\n\d{4}-\d\d-\d\d 00:00:00Z +unrecorded$/m);
  expect(shown.out).toMatch(/Nothing was changed; --run does it\.\n$/);

  const begun = await up.run("schedules", "backfill", "key:past", ...range, "--reason", "a lost week", "--run");
  const [, id = ""] = /^Began (op_[0-9a-z]{26}); follow it/m.exec(begun.out) ?? [];
  const watched = await up.run("operations", "watch", id, "--timeout", "60");
  expect(watched.exitCode, watched.out + watched.err).toBe(0);
  expect(watched.out).toMatch(new RegExp(`^${id}  done +3 of 3  ended `, "m"));
  expect((await up.run("operations", "get", id)).out).toMatch(/^reason +a lost week$/m);
  expect((await up.run("operations", "list", "--schedule", "key:past")).out).toMatch(
    new RegExp(`^OPERATION +KIND +STATE +PROGRESS .*\\n${id} +backfill +done +3 of 3 `),
  );
  const ended = await up.run("operations", "cancel", id);
  expect(ended).toMatchObject({ exitCode: 1, out: "" });
  expect(ended.err).toMatch(/^punctual: The operation is done\n$/);
  expect(await up.run("operations", "list", "--state", "failed")).toMatchObject({
    out: "",
    err: "No operations here.\n",
  });

  const early = await up.run("schedules", "backfill", "key:past", "--from", "2001-01-01T00:00:00Z", "--to", to);
  expect(early).toMatchObject({ exitCode: 1, out: "" });
  expect(early.err).toMatch(/^punctual: from \(--from\): lies further back than history is kept; found: .*; allowed: /);
  expect((await up.run("schedules", "backfill", "key:past", "--from", from)).exitCode).toBe(2);
  expect(await up.run("schedules", "backfill", "key:past", ...range, "--pace", "0")).toMatchObject({ exitCode: 2 });
});

test("a result that cannot be saved says what is wrong with the place", async () => {
  const { runId = "" } = await runReport();
  await up.run("runs", "watch", runId);
  const lost = await up.run("runs", "result", runId, "-o", join(up.directory, "nowhere", "x"));
  expect(lost).toMatchObject({ exitCode: 2, out: "" });
  expect(lost.err).toMatch(/^punctual: --output: the directory .*nowhere does not exist\n$/);
  expect((await up.run("runs", "result", runId, "-o", up.directory)).err).toMatch(/is a directory; allowed: a file/);
});

test("a run is watched to its success, and its result comes whole", async () => {
  const { runId = "" } = await runReport();
  const watched = await up.run("runs", "watch", runId);
  expect(watched.exitCode).toBe(0);
  expect(watched.out.trim().split("\n").at(-1)).toMatch(new RegExp(`^${runId}  succeeded .* attempt 1 .* ended `));
  const shown = await up.run("runs", "get", runId);
  expect(shown.out).toMatch(/^state +succeeded$/m);
  expect(shown.out).toMatch(/^1 +succeeded +\d{4}-/m);
  const link = JSON.parse((await up.run("runs", "result", runId, "--json")).out);
  const file = join(up.directory, "report.html");
  const saved = await up.run("runs", "result", runId, "--output", file);
  expect(saved.out).toContain(`as ${file}`);
  expect(createHash("sha256").update(readFileSync(file)).digest("hex")).toBe(link.sha256);
  expect((await up.run("runs", "result", runId, "--output", "-")).out).toBe(readFileSync(file, "utf8"));
});

test("what an attempt says is printed, to who follows it until its end; this one computes in a thread", async () => {
  const { runId = "" } = await post("/v1/runs", { job: { ...REPORT, name: "report.run-durations" } });
  const followed = await up.run("runs", "logs", runId, "--follow");
  expect(followed.exitCode).toBe(0);
  // An attempt's last words are stored some moments after its end: on a busy machine later than who follows waits for them.
  const said = async () => (await up.run("runs", "logs", runId)).out;
  await until("its last words are stored", async () => (await said()) !== "");
  const whole = await said();
  expect(whole).toMatch(/^\S+ INFO all runs were read \{"runs":\d+,"groups":\d+\}\n$/);
  expect(["", whole]).toContain(followed.out);
  expect((await up.run("runs", "logs", runId, "--follow")).out).toBe(whole);
  expect((await up.run("runs", "logs", runId, "--tail", "2")).out).toBe("}\n");
  expect(JSON.parse((await up.run("runs", "logs", runId, "--json")).out)).toEqual({
    attempt: 1,
    nextByte: whole.length,
    text: whole,
  });
  expect((await up.run("runs", "logs", runId, "--attempt", "2")).err).toMatch(/no attempt 2; its latest is 1/);

  const { runId: silent = "" } = await runThatWaits();
  expect((await up.run("runs", "logs", silent)).err).toBe("No attempt yet.\n");
  await post(`/v1/runs/${silent}/cancel`);
});

test("a cancel of a run that is with somebody else says who ends it, and by when", async () => {
  const { runId } = await post("/v1/runs", { job: { kind: "remote", name: "elsewhere" } });
  const { out: worker } = await up.run("keys", "create", "--label", "elsewhere", "--role", "worker");
  const say = async (verb: string, body: unknown) => {
    const headers = { authorization: `Bearer ${worker.trim()}`, "content-type": "application/json" };
    const answer = await fetch(`${up.url}/v1/worker/${verb}`, { method: "POST", headers, body: JSON.stringify(body) });
    return (await answer.json()) as Record<string, never>;
  };
  const { hints } = await say("poll", { worker: "w1", jobs: ["elsewhere@1"] });
  const { grants } = await say("claim", { worker: "w1", claimId: randomUUID(), hints });
  const { attempt, fence } = grants![0]!;
  const mine = { runId, attempt, fence, worker: "w1" };
  expect((await up.run("runs", "cancel", runId!)).out).toContain("its lease is over");
  const { callbackDueAt } = await say("detach", mine);
  expect((await up.run("runs", "cancel", runId!)).out).toBe(
    `Asked for it; ${runId} is with somebody else, who hears of it only by asking. It ends when they say so, or at ${String(callbackDueAt).replace("T", " ").slice(0, 19)}Z at the latest; a /complete before that still counts\n`,
  );
  await say("adopt", mine);
  expect(await say("fail", mine)).toMatchObject({ outcome: "canceled" });
});

test("the exit code of a watch tells how the run ended, or that it has not", async () => {
  const { runId = "" } = await runThatWaits();
  const open = await up.run("runs", "watch", runId, "--timeout", "1");
  expect(open).toMatchObject({ exitCode: 6, out: expect.stringContaining("queued") });
  expect(open.err).toBe("Still open after 1 s (exit code 6).\n");
  await post(`/v1/runs/${runId}/cancel`);
  expect(await up.run("runs", "watch", runId, "--json")).toMatchObject({ exitCode: 4 });

  const failed = (await runThatWaits()).runId!;
  const url = readFileSync(join(up.directory, "database-url"), "utf8").trim();
  const admin = new pg.Client(url);
  await admin.connect();
  const { rows } = await admin.query("delete from live_run where class = 'memory' returning id");
  await admin.query("update run set state = 'failed', error_code = 'lost', finished_at = now() where id = $1", [
    rows[0].id,
  ]);
  await admin.end();
  const watched = await up.run("runs", "watch", failed);
  expect(watched).toMatchObject({ exitCode: 3, out: expect.stringMatching(/failed .* lost: /) });
});

test("without a run, the newest ones are watched", async () => {
  const { scheduleId } = JSON.parse((await up.run("schedules", "get", "key:run-summary", "--json")).out);
  const { out, exitCode } = await up.run(
    "runs",
    "watch",
    "--newest",
    "20",
    "--json",
    "--schedule",
    "key:run-summary",
    "--timeout",
    "80",
  );
  expect(exitCode).toBe(0);
  for (const line of out.trim().split("\n")) expect(JSON.parse(line)).toMatchObject({ scheduleId });
});

test("what cannot be meant is refused before anything is asked; exit code 2", async () => {
  for (const [args, sentence] of [
    [["schedule", "list"], /unknown command 'schedule'[\s\S]*schedules/],
    [["runs", "wach"], /unknown command 'wach'[\s\S]*Did you mean watch/],
    [["runs", "list", "--sate", "failed"], /unknown option '--sate'[\s\S]*--state/],
    [
      ["schedules", "create", "--name", "x"],
      /a rule \(--cron with --tz, --every, --at, .* or --rule\), --job <job>: not given/,
    ],
    [["schedules", "create", "--name", "x", "--every", "1h"], /^punctual: --job <job>: not given/],
    [["calendars", "put", "company-holiday.json"], /^punctual: company-holiday\.json: no such file$/m],
    [["schedules", "create", "--name", "x", "--timezone", "Etc/UTC"], /unknown option '--timezone'[\s\S]*mean --tz/],
    [["schedules", "create", "--name", "x", "--corn", "@daily"], /unknown option '--corn'[\s\S]*mean --cron/],
    [["schedules", "get", "sales-report"], /found "sales-report".*did you mean "key:sales-report"/],
    [[...CREATE, "--name", "x", "--payload", "{'a':1}"], /^punctual: --payload: is not JSON/],
    [[...CREATE, "--name", "x", "--key", "daily"], /--schedule-key/],
    [[...CREATE, "--name", "x", "--schedule-key", up.key], /--key/],
    [["runs", "list", "--limit", "1000"], /--limit: found "1000"; allowed: .* 1 to 200/],
    [["runs", "list", "--url", "localhost:8080"], /--url: found "localhost:8080"/],
  ] as const) {
    const { exitCode, err, out } = await up.run(...args);
    expect(err).toMatch(sentence);
    expect({ args, exitCode, out }).toEqual({ args, exitCode: 2, out: "" });
  }
});

test("right after a run-now, a watch of the schedule finds that run, not the one before", async () => {
  await up.run(...CREATE, "--name", "Again", "--payload", '{"period":"last-day"}', "--schedule-key", "again");
  const now = async () => JSON.parse((await up.run("schedules", "run", "key:again", "--json")).out).runId as string;
  await up.run("runs", "watch", await now());
  const second = await now();
  const watched = await up.run("runs", "watch", "--schedule", "key:again", "--timeout", "60");
  expect(watched.exitCode, watched.err).toBe(0);
  expect(watched.out).toMatch(new RegExp(`^${second}  succeeded `, "m"));
  const listed = await up.run("runs", "list", "--schedule", "key:again");
  expect(listed.out).toMatch(/^RUN +SCHEDULE +TRIGGER +STATE .* LATE /);
  expect(listed.out).toMatch(new RegExp(`^${second} +key:again +manual +succeeded `, "m"));
  expect((await up.run("runs", "get", second)).out).toMatch(/^schedule +sch_\S+ +key:again +Again$/m);
});

test("a second start in the same checkout says where the first one runs, and leaves it alone", async () => {
  const second = await punctual(["up"], { PUNCTUAL_DIR: up.directory, PUNCTUAL_PORT: "0" });
  expect(second).toMatchObject({
    exitCode: 1,
    out: "",
    err: `punctual: Punctual is already running here at ${up.url}\n`,
  });
  expect(await up.run("schedules", "list")).toMatchObject({ exitCode: 0 });
});

test("the demo's key goes to the demo only", async () => {
  const { err, exitCode } = await up.run("runs", "list", "--url", "http://127.0.0.1:10");
  expect(err).toMatch(/^punctual: --key: is missing/);
  expect(exitCode).toBe(2);
});

test("what holds a password is for its owner's eyes", () => {
  for (const name of ["key", "database-url"]) expect(statSync(join(up.directory, name)).mode & 0o777).toBe(0o600);
});

test("the doctor finds a running system well", async () => {
  const { runId = "" } = await runReport();
  await up.run("runs", "watch", runId);
  const unwell = async () => {
    const { out } = await up.run("doctor", "--json");
    const { checks } = JSON.parse(out) as { checks: { status: string; sentence: string }[] };
    const found = checks.filter((one) => one.status === "finding" || one.status === "failed");
    // A machine with more to do than it can stops any event loop, and the doctor is right to say so for an hour.
    return found.filter((one) => !/^the event loop of .* was blocked/.test(one.sentence));
  };
  // The test before took a run out of the database by hand, and nobody serves class memory.
  await expect.poll(unwell).toEqual([]);
});

test("the ledger says for each instant what became of it, and that none is missing", async () => {
  await up.run(...CREATE, "--name", "Ledger", "--schedule-key", "ledger");
  const empty = await up.run("schedules", "ledger", "key:ledger");
  expect(empty.exitCode, empty.err).toBe(0);
  expect(empty.out).toMatch(/^0 ran, 0 pending, 0 skipped\nComplete from \S+ \S+ to \S+ \S+: no instant is missing$/m);
  expect(empty.err).toContain("No instants in this period.");
  const json = JSON.parse((await up.run("schedules", "ledger", "key:ledger", "--json")).out);
  expect(json).toMatchObject({ complete: true, items: [], counts: { ran: { value: 0 } } });
  const refused = await up.run("schedules", "ledger", "key:ledger", "--from", "yesterday");
  expect([refused.exitCode, refused.err]).toEqual([1, expect.stringMatching(/from.*RFC 3339.*yesterday/)]);
});

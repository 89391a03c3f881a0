import { expect, test } from "vitest";
import { sentenceOf } from "../../../src/app/cli/field-fault.ts";
import { type FieldOptions, readFields } from "../../../src/app/cli/schedules/field-options.ts";
import { showJobFields } from "../../../src/app/cli/schedules/job-fields.ts";
import { showJob, showJobShort, showRule } from "../../../src/app/cli/words.ts";
import { containerJobSchema } from "../../../src/domain/jobs/container.ts";
import { httpJobSchema } from "../../../src/domain/jobs/http.ts";
import { queueJobSchema } from "../../../src/domain/jobs/queue.ts";

const CRON = { kind: "cron", expression: "0 9 * * 1-5", zone: "America/New_York", gap: "skip" };
const ruleOf = (options: FieldOptions, current?: typeof CRON) => readFields(options, current).rule;

test("any rule can be given: cron, an interval, instants, the end of the run before, or as the API takes it", () => {
  expect(ruleOf({ cron: "@daily", tz: "Etc/UTC" })).toEqual({ kind: "cron", expression: "@daily", zone: "Etc/UTC" });
  expect(ruleOf({ every: "15m", anchor: "2027-01-01T00:00:00Z" })).toEqual({
    kind: "interval",
    every: { n: 15, unit: "minutes" },
    anchorAt: "2027-01-01T00:00:00Z",
  });
  expect(ruleOf({ every: "6h" })?.anchorAt).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  expect(ruleOf({ at: ["2031-05-01T09:00"], tz: "Europe/Berlin" })).toEqual({
    kind: "once",
    at: "2031-05-01T09:00",
    zone: "Europe/Berlin",
  });
  const two = ["2031-05-01T09:00:00Z", "2031-06-01T09:00:00Z"];
  expect(ruleOf({ at: two })).toEqual({ kind: "dates", at: two });
  expect(ruleOf({ afterCompletion: "90s" })).toEqual({ kind: "afterCompletion", delayMs: 90_000 });
  expect(ruleOf({ rule: '{"kind":"interval","everyMs":5000,"anchorAt":0}' })).toMatchObject({ everyMs: 5000 });
});

test("rules that contradict each other, or say nothing, are refused with the option that is wrong", () => {
  expect(() => ruleOf({ every: "5m", at: ["2031-05-01T09:00:00Z"] })).toThrow("found 2 of them; allowed: one");
  expect(() => ruleOf({ every: "soon" })).toThrow('--every: found "soon"; allowed: a whole number and s, m, h or d');
  expect(() => ruleOf({ every: "5m", tz: "Etc/UTC" })).toThrow("--tz: found with a rule that has no clock");
  expect(() => ruleOf({ cron: "@daily" })).toThrow("--tz <zone>: not given");
  expect(() => ruleOf({ anchor: "2031-05-01T09:00:00Z" })).toThrow("--anchor: found without --every");
  expect(() => ruleOf({ tz: "Etc/UTC" })).toThrow("--tz: found without a rule");
  expect(() => ruleOf({ rule: "[]" })).toThrow("--rule: is no JSON object");
  expect(() => readFields({ set: '{"payload":{}}' })).toThrow("that one is given with --payload");
});

test("an edit of a cron rule's expression or zone keeps what else the rule says", () => {
  expect(ruleOf({ cron: "0 10 * * *" }, CRON)).toEqual({ ...CRON, expression: "0 10 * * *" });
  expect(ruleOf({ tz: "Etc/UTC" }, CRON)).toEqual({ ...CRON, zone: "Etc/UTC" });
  expect(ruleOf({ every: "1d", anchor: "2027-01-01T00:00:00Z" }, CRON)).not.toHaveProperty("zone");
  expect(readFields({ set: '{"notes":null}' }, CRON)).toEqual({ notes: null });
});

test("a rule is said in words, its durations too", () => {
  expect(showRule({ kind: "afterCompletion", delayMs: 45_000 })).toBe("45 s after the last run ended");
  expect(showRule({ kind: "once", at: "2031-05-01T09:00", zone: "Europe/Berlin" })).toBe(
    "once at 2031-05-01T09:00 Europe/Berlin",
  );
  expect(showRule({ kind: "interval", everyMs: 5_400_000, anchorAt: 0 })).toBe("every 90 min");
  expect(showRule({ kind: "interval", every: { n: 1, unit: "days" }, anchorAt: 0 })).toBe("every day");
  const two = ["2031-05-01T09:00:00Z", "2031-06-01T09:00:00Z"];
  expect(showRule({ kind: "anyOf", rules: [CRON, { kind: "dates", at: two }] })).toBe(
    "0 9 * * 1-5 America/New_York, or once at each of 2 dates",
  );
});

test("a job is said by its name, by its URL, or as the API takes it", () => {
  const jobOf = (job: string) => readFields({ job }).job;
  expect(jobOf("report.run-summary")).toEqual({ kind: "function", name: "report.run-summary", version: 1 });
  expect(jobOf("remote:sync@3")).toEqual({ kind: "remote", name: "sync", version: 3 });
  expect(jobOf("https://api.example.com/a@b")).toEqual({ kind: "http", url: "https://api.example.com/a@b" });
  expect(jobOf('{"kind":"container","image":"app:1"}')).toEqual({ kind: "container", image: "app:1" });
  expect(() => jobOf("report@")).toThrow('--job: found "report@"; allowed: name@version');
  expect(() => jobOf("ftp://example.com")).toThrow("a URL, or JSON");
  expect(() => jobOf("{")).toThrow("--job: is not JSON");
});

test("a job is shown as what it is: no query, nobody's name or password at a broker, and so that a name can be typed back", () => {
  const shown = (job: object) => showJob(job as Parameters<typeof showJob>[0]);
  for (const typed of ["report.run-summary@2", "remote:sync@3"])
    expect(shown(readFields({ job: typed }).job!)).toBe(typed);
  expect(shown({ kind: "http", method: "PUT", url: "https://a.example.com/x?key=1" })).toBe(
    "http PUT https://a.example.com/x",
  );
  const bullmq = {
    kind: "queue",
    broker: "bullmq",
    url: "rediss://ann:{{payload.p}}@r.example.com/2",
    queue: "invoices",
  };
  expect(shown(bullmq)).toBe("queue bullmq invoices @r.example.com:6379");
  const amqp = { kind: "queue", broker: "amqp", url: "amqp://[2001:db8::1]:99", exchange: "", routingKey: "mails" };
  expect(shown(amqp)).toBe("queue amqp mails @[2001:db8::1]:99");
  expect(shown({ kind: "container", image: "busybox:1" })).toBe("container busybox:1");
  const long = showJobShort({ kind: "container", image: "registry.example.com/".padEnd(90, "a") });
  expect([long.length, long.at(-1)]).toEqual([60, "…"]);
});

test("of a job's fields those are shown that somebody has chosen", () => {
  const container = containerJobSchema.parse({
    kind: "container",
    image: "busybox:1",
    args: ["a"],
    resources: { cpu: 2 },
  });
  expect(showJobFields(container)).toEqual({ "job.args": '["a"]', "job.resources": '{"cpu":2}' });
  const plain = { kind: "queue", broker: "bullmq", url: "redis://r.example.com", queue: "q" };
  expect(showJobFields(queueJobSchema.parse(plain))).toEqual({ "job.url": "redis://r.example.com" });
  expect(showJobFields(httpJobSchema.parse({ kind: "http", url: "https://example.com/a" }))).toEqual({});
  expect(showJobFields({ kind: "remote", name: "sync", version: 3 })).toEqual({});
});

test("a fault of the API names the option that fills the field", () => {
  const optionOf = (field: string) => /\((--[a-z-]+)\)/.exec(sentenceOf({ field, message: "is wrong" }))?.[1];
  expect(optionOf("rule.zone")).toBe("--tz");
  expect(optionOf("rule.minute")).toBe("--cron");
  expect(optionOf("rule.at[1]")).toBe("--at");
  expect(optionOf("rule.every.n")).toBe("--every");
  expect(optionOf("payload.a.b")).toBe("--payload");
  expect(optionOf("events[0]")).toBe("--event");
  const allowed = "none: make one with PUT /v1/calendars/{name}";
  expect(sentenceOf({ field: "calendars[0].name", message: "there is none", allowed })).toBe(
    "calendars[0].name (--calendar): there is none; allowed: none: make one with punctual calendars put",
  );
});

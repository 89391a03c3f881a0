import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { parseJson } from "../../../src/api/input/json.ts";
import { matchesImage, parseImage } from "../../../src/domain/containers/image.ts";
import { workSchema } from "../../../src/domain/definition.ts";
import { effectSchema } from "../../../src/domain/effects/definition.ts";
import { emailTemplateFields } from "../../../src/domain/effects/email-content.ts";
import { fillInHtml } from "../../../src/domain/effects/template.ts";
import { readBrokerUrl, withoutUser } from "../../../src/domain/jobs/broker-url.ts";
import { fillJson, fillText, type JobFacts, unknownJobPlaceholders } from "../../../src/domain/jobs/template.ts";
import { readExpression } from "../../../src/domain/recurrence/cron/grammar.ts";
import { mayHoldForms, mayHoldSealed } from "../../../src/domain/secrets/forms.ts";
import { retryAfterOf } from "../../../src/handlers/outbound/retry-after.ts";
import { canonicalHost } from "../../../src/kernel/addresses.ts";
import { isMediaType } from "../../../src/objects/media-type.ts";

/**
 * Texts that are a hundred thousand characters of what a reader has to try again and again, if it is one that does. Such a
 * reader takes minutes for one of them, or for ever; nothing is measured here but that all of them are read.
 */
const LENGTH = 100_000;
const UNITS = [
  " ",
  "\t\n",
  "{{",
  "{{ ",
  "{{payload.",
  "}}",
  "/",
  "//",
  "a",
  "a.",
  "a-",
  "_",
  ":",
  "@",
  "%",
  "=",
  "0",
  '"',
  "\\",
];
const ENDS = ["", "x", "#", "\n"];
const textsOf = (begin: string) =>
  UNITS.flatMap((unit) => ENDS.map((end) => begin + unit.repeat(LENGTH / unit.length) + end));

const FACTS = { run: { id: "r", scheduleId: null, attempt: 1 }, payload: {} } as unknown as JobFacts;
const ignored = () => undefined;
const job = (fields: object) => workSchema.safeParse({ job: fields });
const http = { kind: "http", url: "https://example.com/" };
const amqp = { kind: "queue", broker: "amqp", url: "amqp://example.com", exchange: "" };
const bullmq = { kind: "queue", broker: "bullmq", url: "redis://example.com", queue: "q" };
const container = { kind: "container", image: "app:1" };
const email = { kind: "email", name: "a", to: ["a@example.com"] };
const image = parseImage("registry.example.com/team/app:1")!;

const READERS: Readonly<Record<string, readonly [begin: string, read: (text: string) => unknown]>> = {
  "placeholders that mean something": ["{{", (text) => unknownJobPlaceholders(text)],
  "a template": ["{{", (text) => [fillText(text, FACTS, ignored), fillJson([text], FACTS, ignored)]],
  "an email": ["{{", (text) => fillInHtml(text, { run: {} } as never, null)],
  "the templates of an email": ["{{", (text) => emailTemplateFields.safeParse({ subject: text, text, html: text })],
  "an email effect": ["a", (text) => effectSchema.safeParse({ ...email, to: [`${text}@a.b`, `a@${text}`], text })],
  "a webhook effect": [
    "http://",
    (url) => effectSchema.safeParse({ kind: "webhook", name: "a", url, headers: { a: url } }),
  ],
  "the URL of a call": ["http://a", (url) => job({ ...http, url })],
  "the path of a call": ["http://a/{{", (url) => job({ ...http, url })],
  "headers and body of a call": ["{{", (text) => job({ ...http, headers: { Authorization: text }, body: { text } })],
  "the name of a header": ["x", (name) => job({ ...http, headers: { [name]: "" } })],
  "a JSON body": ["{{", (text) => job({ ...http, body: { json: [text] } })],
  "a broker's URL": ["amqp://", (url) => [job({ ...amqp, url }), readBrokerUrl(url), withoutUser(url)]],
  "a broker's user": ["amqp://{{payload.", (url) => [job({ ...amqp, url }), readBrokerUrl(url), withoutUser(url)]],
  "a message": ["{{", (text) => job({ ...amqp, message: text, headers: { a: text }, routingKey: text })],
  "a queue": ["q", (queue) => job({ ...bullmq, queue, url: `redis://a/${queue}` })],
  "a container": ["{{", (text) => job({ ...container, args: [text], env: { A: text }, workdir: text, user: text })],
  "an image": ["a.b/", (text) => [job({ ...container, image: text }), parseImage(text), parseImage(`a:${text}`)]],
  "a result": ["/result/", (path) => job({ ...container, result: { from: "file", path, mediaType: `a/b; ${path}` } })],
  "the name of a job": ["a", (name) => job({ kind: "remote", name })],
  "a pattern of images": ["*", (text) => matchesImage(`${text}*${text.slice(0, 100)}`, image)],
  "a cron expression": ["* ", (text) => readExpression(text, false)],
  "a host": ["a", (text) => [canonicalHost(text), canonicalHost(`[::1%${text}]`)]],
  "a media type": ["a/b; c=", (text) => isMediaType(text)],
  "a time to wait": ["1", (text) => retryAfterOf(text, 0)],
  "forms of secrets": ['"$', (text) => [mayHoldForms(text), mayHoldSealed(text)]],
  "a number in JSON": ["0.1", (text) => parseJson(text)],
};

it.each(Object.entries(READERS))("%s is read to the end, whatever it is made of", (_what, [begin, read]) => {
  let readToTheEnd = 0;
  const readAll = () => {
    for (const text of textsOf(begin)) {
      try {
        read(text);
      } catch {
        // Refused is as good as read.
      }
      readToTheEnd++;
    }
  };
  // Nothing else could stop a pattern that goes on for ever: the test would hang with it.
  runInNewContext("readAll()", { readAll }, { timeout: 20_000 });
  expect(readToTheEnd).toBe(UNITS.length * ENDS.length);
});

it("zeros within a number are no reason to look at each of them again", () => {
  expect(() => parseJson(`0.1${"0".repeat(LENGTH)}1`)).toThrow(/more than 17 significant digits/);
  expect(parseJson(`0.5${"0".repeat(LENGTH)}`)).toBe(0.5);
  expect(parseJson("120.0e2")).toBe(12_000);
});

it("patterns of images say with stars what may be between, and in what order", () => {
  const full = parseImage("registry.example.com/team/app-one:1")!;
  for (const pattern of [
    "*",
    "registry.*/team/*",
    "*/app-*:1",
    "*.com/*e*m*/*",
    "registry.example.com/team/app-one**",
  ]) {
    expect([pattern, matchesImage(pattern, full)]).toEqual([pattern, true]);
  }
  for (const pattern of ["*/app-*:2", "*one*app*", "registry.example.com/team/app-one*one", "team/*", "*/app"]) {
    expect([pattern, matchesImage(pattern, full)]).toEqual([pattern, false]);
  }
});

it("braces that are not closed are a text like any other", () => {
  expect(job({ ...http, headers: { a: "{{" }, body: { text: "{{ and }}, and {{ payload.a" } }).success).toBe(false);
  expect(job({ ...http, headers: { a: "{{" }, body: { text: "}} and {{ payload.a" } }).success).toBe(true);
  expect(fillText("}} and {{ payload.a {{ run.id }}", FACTS, ignored)).toBe("}} and {{ payload.a r");
});

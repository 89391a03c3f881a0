import { describe, expect, it } from "vitest";
import { brokerUrlFault, fillCredential, readBrokerUrl } from "../../../src/domain/jobs/broker-url.ts";
import { queueJobSchema } from "../../../src/domain/jobs/queue.ts";

const facts = (payload: Record<string, never> | Record<string, string>) => ({
  run: { id: "run_1", scheduleId: null, scheduledAt: "", dueAt: "", attempt: 1, fence: "1" },
  payload,
});
const amqp = (change: Record<string, unknown>) =>
  queueJobSchema.safeParse({
    kind: "queue",
    broker: "amqp",
    url: "amqp://rabbit.example.com",
    exchange: "e",
    ...change,
  });
const bullmq = (change: Record<string, unknown>) =>
  queueJobSchema.safeParse({
    kind: "queue",
    broker: "bullmq",
    url: "redis://redis.example.com",
    queue: "q",
    ...change,
  });

describe("the URL of a broker", () => {
  it.each([
    ["redis://h", { tls: false, host: "h", port: 6379, user: "", password: "", path: "" }],
    [
      "rediss://u:{{payload.a.b}}@h.example.com:1/3",
      { tls: true, port: 1, user: "u", password: "{{payload.a.b}}", path: "3" },
    ],
    ["amqp://{{payload.u}}@h", { tls: false, port: 5672, user: "{{payload.u}}", password: "" }],
    [
      "amqps://{{payload.u}}:{{payload.p}}@[2001:db8::1]",
      { tls: true, host: "2001:db8::1", port: 5671, password: "{{payload.p}}" },
    ],
    ["amqp://a%40b:{{payload.c:d@e}}@h", { host: "h", user: "a%40b", password: "{{payload.c:d@e}}" }],
  ])("is read: %s", (text, parts) => {
    expect(readBrokerUrl(text)).toMatchObject(parts);
  });

  it.each([
    "",
    "h",
    "redis:h",
    "redis:///1",
    "redis://h?x=1",
    "redis://h#x",
    "redis://a b",
    "kafka://h",
    "amqp://%zz@h",
    "amqp://h:99999",
  ])("is none: %s", (text) => {
    expect(readBrokerUrl(text)).toBeUndefined();
  });

  it("has its secrets from the payload, whatever characters they are of", () => {
    const { user, password } = readBrokerUrl("amqp://a%40{{payload.user}}:{{ payload.password }}@h")!;
    const secret = 'p@ss:/%41{{run.id}}\ud800"';
    expect(fillCredential(user, facts({ user: "b" }), "user")).toBe("a@b");
    expect(fillCredential(password, facts({ password: secret }), "password")).toBe(secret.toWellFormed());
    expect(fillCredential(password, facts({}), "password")).toBe("");
  });

  it("is refused with a password in it, or with other placeholders than those of the payload", () => {
    const faultOf = (text: string) =>
      brokerUrlFault(text, { protocols: ["amqp", "amqps"], path: /^$/, pathWords: "nothing" });
    expect(faultOf("amqp://u:{{payload.p}}@h")).toBeUndefined();
    for (const text of ["amqp://u:p@h", "amqp://u:{{payload.p}}x@h", "amqp://:x@h"])
      expect(faultOf(text)).toMatch(/password/);
    for (const text of ["amqp://{{run.id}}@h", "amqp://u:{{secrets.p}}@h", "amqp://{{payload}}:{{payload}}@h"]) {
      expect(faultOf(text)).toMatch(/placeholders/);
    }
    for (const text of ["amqp://{{payload.h}}", "amqp://h/vhost", "redis://h"]) expect(faultOf(text)).toBeDefined();
  });
});

describe("a job of kind queue", () => {
  it("has little to say", () => {
    expect(amqp({}).data).toEqual({
      kind: "queue",
      broker: "amqp",
      url: "amqp://rabbit.example.com",
      exchange: "e",
      vhost: "/",
      routingKey: "",
      persistent: true,
      mandatory: true,
      headers: {},
      message: "{{payload}}",
      completion: "delivered",
      timeoutMs: 10_000,
    });
    expect(bullmq({ message: null }).data).toMatchObject({
      prefix: "bull",
      jobName: "run",
      options: {},
      message: null,
    });
  });

  it.each([
    ["placeholders that mean nothing", () => amqp({ message: { a: ["{{payload.x}} {{nothing}}"] } })],
    ["a message that would grow without end", () => amqp({ message: "{{payload}}".repeat(101) })],
    [
      "more placeholders in all than one job may have",
      () => amqp({ message: "{{payload}}".repeat(60), headers: { a: "{{payload}}".repeat(41) } }),
    ],
    ["a message that is long", () => amqp({ message: "x".repeat(16_384) })],
    ["a time for callbacks that nobody waits for", () => bullmq({ callbackWithinMs: 5_000 })],
    ["a queue with a colon in its name", () => bullmq({ queue: "a:b" })],
    ["an option that is not BullMQ's, or not for everybody", () => bullmq({ options: { jobId: "x" } })],
    ["a header of ours", () => amqp({ headers: { "X-Punctual-Fence": "1" } })],
    ["a routing key that is too long in bytes", () => amqp({ routingKey: "ä".repeat(128) })],
    ["what is the other broker's", () => amqp({ queue: "q" })],
  ])("is refused with %s", (_what, parsed) => {
    expect(parsed().success).toBe(false);
  });
});

import { describe, expect, it } from "vitest";
import { httpJobSchema } from "../../../src/domain/jobs/http.ts";

const URL_ = "https://api.example.com/x";
const faultsOf = (job: object) => {
  const parsed = httpJobSchema.safeParse({ kind: "http", url: URL_, ...job });
  return parsed.success ? [] : parsed.error.issues.map((issue) => issue.path.join("."));
};

describe("a definition of an HTTP job", () => {
  it.each([
    {},
    { method: "GET" },
    { method: "DELETE", body: null },
    { headers: { Authorization: "Bearer {{ payload.token }}", "X-Api-Key": "{{payload.key}}", Accept: "*/*" } },
    { headers: { "Content-Type": "application/xml" }, body: { text: "<run>{{run.id}}</run>" } },
    { body: { json: ["{{payload}}", { a: null }] } },
    { redirects: { policy: "follow" } },
    { expectedStatuses: [200, "3xx"], retryStatuses: [] },
    { completion: "callback", callbackWithinMs: 60_000 },
  ])("is taken: %j", (job) => {
    expect(faultsOf(job)).toEqual([]);
  });

  it.each([
    ["headers.Authorization", { Authorization: "Bearer abc" }],
    ["headers.cookie", { cookie: "session=1; run={{run.id}}" }],
    ["headers.Host", { Host: "other.example.com" }],
    ["headers.content-length", { "content-length": "5" }],
    ["headers.Transfer-Encoding", { "Transfer-Encoding": "chunked" }],
    ["headers.Expect", { Expect: "100-continue" }],
    ["headers.Proxy-Authorization", { "Proxy-Authorization": "{{payload.p}}" }],
    ["headers.Punctual-Fence", { "Punctual-Fence": "1" }],
    ["headers.Webhook-Id", { "Webhook-Id": "1" }],
    ["headers.Idempotency-Key", { "Idempotency-Key": "1" }],
    ["headers.x y", { "x y": "1" }],
    ["headers.x", { x: "a\r\nb: c" }],
    ["headers.x", { x: "{{payload.}}" }],
    ["headers.x", { x: "{{secrets.a}}" }],
    ["headers.X", { x: "1", X: "2" }],
    ["headers", Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`x${i}`, "x".repeat(2000)]))],
  ])("is refused for %s: %j", (field, headers) => {
    expect(faultsOf({ headers })).toEqual([field]);
  });

  it.each([
    ["method", { method: "CONNECT" }],
    ["body", { method: "GET", body: { text: "x" } }],
    ["body.json", { body: { json: { a: "{{nothing}}" } } }],
    ["", { body: { text: "{{payload}}".repeat(101) } }],
    ["", { url: `${URL_}/${"{{payload}}".repeat(40)}`, headers: { x: "{{run.id}}".repeat(61) } }],
    ["url", { url: `${URL_}/${"{{payload}}".repeat(200)}` }],
    ["body.text", { body: { text: "x".repeat(65_537) } }],
    ["timeoutMs", { timeoutMs: 0 }],
    ["expectedStatuses", { expectedStatuses: [] }],
    ["retryStatuses.0", { retryStatuses: [99] }],
    ["redirects.max", { redirects: { policy: "follow", max: 11 } }],
    ["responseLimitBytes", { responseLimitBytes: 2 ** 30 }],
    ["callbackWithinMs", { callbackWithinMs: 60_000 }],
  ])("is refused for %s", (field, job) => {
    expect(faultsOf(job)).toEqual([field]);
  });
});

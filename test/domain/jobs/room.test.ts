import { describe, expect, it } from "vitest";
import { fillCredential } from "../../../src/domain/jobs/broker-url.ts";
import { containerJobSchema } from "../../../src/domain/jobs/container.ts";
import { fillRequest } from "../../../src/domain/jobs/http/request.ts";
import { httpJobSchema } from "../../../src/domain/jobs/http.ts";
import { FilledTooLong, fillJson, fillText, type JobFacts, roomFor } from "../../../src/domain/jobs/template.ts";

const factsOf = (payload: JobFacts["payload"]): JobFacts => ({
  run: { id: "run_1", scheduleId: null, scheduledAt: "", dueAt: "", attempt: 1, fence: "1" },
  payload,
});
/** As large as a payload may be. */
const LARGE = factsOf({ a: "€".repeat(21_000) });

describe("what is filled in", () => {
  it("has room to the last byte, and the field is named when it has not", () => {
    const fill = (most: number) => fillText("ä {{payload.a}} {{ run.id }}", factsOf({ a: "€" }), roomFor(most)("here"));
    expect(fill(12)).toBe("ä € run_1");
    expect(() => fill(11)).toThrow(new FilledTooLong("here: as filled in, it would have more than 11 bytes"));
  });

  it("stops where the room ends: of a thousand payloads none is added that does not fit", () => {
    const asked: number[] = [];
    const room = roomFor(200_000)("here");
    const counted = (piece: string) => {
      asked.push(piece.length);
      room(piece);
    };
    expect(() => fillText("{{payload}}".repeat(1000), LARGE, counted)).toThrow(FilledTooLong);
    expect(asked.filter((length) => length > 0)).toHaveLength(4);
    asked.length = 0;
    expect(() => fillJson(Array(1000).fill("{{payload}}"), LARGE, counted)).toThrow(FilledTooLong);
    expect(asked).toHaveLength(1);
  });

  it("shares the room of a place among its fields", () => {
    const room = roomFor(10, "both together");
    fillText("{{payload.a}}", factsOf({ a: "12345" }), room("a"));
    expect(() => fillText("{{payload.a}}", factsOf({ a: "123456" }), room("b"))).toThrow(/^b: .* both together /);
  });

  it("is measured as JSON where it becomes JSON", () => {
    const facts = factsOf({ quotes: '"'.repeat(10) });
    const fill = (most: number) =>
      fillJson(["{{payload.quotes}}", "x{{payload.quotes}}"], facts, roomFor(most)("here"));
    expect(fill(43)).toEqual(['"'.repeat(10), `x${'"'.repeat(10)}`]);
    expect(() => fill(42)).toThrow(FilledTooLong);
  });

  it("is written as JSON once for an attempt, however often it stands there", () => {
    let written = 0;
    const toJSON = () => {
      written++;
      return {};
    };
    const facts = factsOf({ a: { toJSON } as never });
    expect(fillText("{{payload.a}}".repeat(50), facts, roomFor(1000)("here"))).toBe("{}".repeat(50));
    expect(written).toBe(1);
  });
});

describe("a definition of another time, with more placeholders than are taken today", () => {
  const job = httpJobSchema.parse({ kind: "http", url: "https://example.com/" });
  const many = "{{payload}}".repeat(20_000);

  it.each([
    ["url", { url: `https://example.com/?${many}` }],
    ["url", { url: `https://example.com/${many}` }],
    ["headers.x", { headers: { x: many } }],
    ["body.text", { body: { text: many } }],
    ["body.json", { body: { json: [many, { a: many }] } }],
  ])("becomes no request: %s", (field, change) => {
    const filled = fillRequest({ ...job, ...change }, LARGE);
    expect(filled).toMatchObject({ ok: false, fault: expect.stringContaining(`${field}: as filled in, `) });
  });

  it("becomes no credential either", () => {
    expect(() => fillCredential(many, LARGE, "the URL's user")).toThrow(/^the URL's user: .* 8192 bytes$/);
    // Characters that are longer in a URL count as what the broker is sent.
    const tight = factsOf({ a: "€".repeat(2730) });
    expect(fillCredential("{{payload.a}}", tight, "user")).toHaveLength(2730);
  });
});

it("a container's own words are refused where they would never have room", () => {
  const parse = (size: number) =>
    containerJobSchema.safeParse({
      kind: "container",
      image: "app:1",
      args: Array(32).fill("x".repeat(8192)),
      command: ["x".repeat(size)],
    });
  expect([parse(0).success, parse(1).success]).toEqual([true, false]);
});

it("a container may have as many placeholders as any other job, in all of its fields", () => {
  const parse = (count: number) =>
    containerJobSchema.safeParse({
      kind: "container",
      image: "app:1",
      env: { A: "{{payload}}".repeat(50), B: "{{ run.id }}" },
      args: ["{{payload.a}}".repeat(count)],
    });
  expect(parse(49).success).toBe(true);
  expect(parse(50).error?.issues).toMatchObject([{ path: [], message: "at most 100 placeholders in one job" }]);
});

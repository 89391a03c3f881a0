import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Json, JsonSyntaxError, JsonValueError, parseJson } from "../../src/api/input/json.ts";

function faultOf(text: string): JsonSyntaxError | JsonValueError {
  try {
    parseJson(text);
  } catch (error) {
    if (error instanceof JsonSyntaxError || error instanceof JsonValueError) return error;
    throw error;
  }
  throw new Error(`accepted: ${text}`);
}

describe("the JSON reader", () => {
  it("reads whatever JSON.stringify writes", () => {
    fc.assert(
      fc.property(
        fc.jsonValue({ maxDepth: 6, noUnicodeString: false } as never),
        fc.constantFrom(undefined, 1, "\t"),
        (value, indent) => {
          const text = JSON.stringify(value, undefined, indent);
          if (/\\u0000|\\ud[89a-f]/i.test(text) || /-0\b(?!\.)/.test(text)) return;
          let mine: Json;
          try {
            mine = parseJson(text);
          } catch (error) {
            expect(error).toBeInstanceOf(JsonValueError);
            return;
          }
          expect(mine).toEqual(JSON.parse(text));
        },
      ),
      { numRuns: 500 },
    );
  });

  it("refuses whatever JSON.parse refuses", () => {
    fc.assert(
      fc.property(fc.stringMatching(/^[{}[\]",:0-9eE.+\-\\ntrualsf /]{0,12}$/), (text) => {
        let theirs: unknown;
        try {
          theirs = JSON.parse(text);
        } catch {
          expect(faultOf(text)).toBeInstanceOf(Error);
          return;
        }
        try {
          expect(parseJson(text)).toEqual(theirs);
        } catch (error) {
          expect(error).toBeInstanceOf(JsonValueError);
        }
      }),
      { numRuns: 2000 },
    );
  });

  it("says where a text stops being JSON", () => {
    expect(faultOf('{"a": 1,\n "b": }')).toMatchObject({
      line: 2,
      column: 7,
      message: expect.stringContaining('found "}"'),
    });
    expect(faultOf("")).toMatchObject({ line: 1, column: 1, message: expect.stringContaining("the end of the text") });
    expect(faultOf("[1,]")).toBeInstanceOf(JsonSyntaxError);
    expect(faultOf("01")).toBeInstanceOf(JsonSyntaxError);
    expect(faultOf('"a\nb"')).toBeInstanceOf(JsonSyntaxError);
  });

  it("B44 refuses NUL and lone surrogates by path, and keeps the six typed characters", () => {
    expect(faultOf('{"a":{"b":["x\\u0000y"]}}')).toMatchObject({ path: ["a", "b", 0], found: "a NUL character" });
    expect(faultOf('{"k\\u0000":1}')).toMatchObject({ found: "a NUL character" });
    expect(faultOf('{"a":"\\ud800"}')).toMatchObject({ path: ["a"], found: "a lone surrogate" });
    expect(parseJson('{"a":"\\\\u0000"}')).toEqual({ a: "\\u0000" });
    expect(parseJson('"\\ud83d\\ude00"')).toBe("😀");
  });

  it("B46 refuses numbers it would have to change", () => {
    for (const number of [
      "9007199254740993",
      "-9007199254740992",
      "1e400",
      "-0",
      "-0.0",
      "1e-400",
      "0.12345678901234567891",
    ]) {
      expect(faultOf(`{"n":${number}}`), number).toMatchObject({ path: ["n"] });
    }
    expect(parseJson("[9007199254740991, 0.30000000000000004, 1e300, 1.10, 0.0, 100000.0]")).toEqual([
      9007199254740991, 0.30000000000000004, 1e300, 1.1, 0, 100000,
    ]);
  });

  it("refuses a key given twice, and JSON nested too deep", () => {
    expect(faultOf('{"a":{"b":1,"b":1}}')).toMatchObject({ path: ["a", "b"], message: "the key is given twice" });
    expect(faultOf("[".repeat(100_000))).toMatchObject({ message: "the JSON is nested too deep" });
    expect(parseJson(`${"[".repeat(64)}${"]".repeat(64)}`)).toBeDefined();
  });

  it("keeps keys that mean something to JavaScript", () => {
    const value = parseJson('{"__proto__":{"polluted":true},"constructor":1,"toString":2}') as Record<string, Json>;
    expect(JSON.stringify(value)).toBe('{"__proto__":{"polluted":true},"constructor":1,"toString":2}');
    expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
  });
});

/**
 * A JSON reader that loses nothing silently. `JSON.parse` rounds 2^53+1, takes the last of two equal keys, turns 1e400
 * into infinity and accepts texts PostgreSQL cannot store; here each of these is a refusal that names the place.
 */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

const DEEPEST_JSON = 64;

/** The text is no JSON: `line` and `column` count from 1. */
export class JsonSyntaxError extends Error {
  readonly line: number;
  readonly column: number;

  constructor(message: string, text: string, at: number) {
    super(message);
    const before = text.slice(0, at);
    this.line = before.split("\n").length;
    this.column = at - before.lastIndexOf("\n");
  }
}

/** The text is JSON, but a value in it could not be kept as it was sent. */
export class JsonValueError extends Error {
  readonly path: readonly (string | number)[];
  readonly found: string;
  readonly allowed: string;

  constructor(message: string, path: readonly (string | number)[], found: string, allowed: string) {
    super(message);
    this.path = path;
    this.found = found;
    this.allowed = allowed;
  }
}

const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON strings may not hold raw control characters
const PLAIN = /[^"\\\u0000-\u001f]+/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

/** Throws JsonSyntaxError or JsonValueError. Accepts exactly one value, at most 64 levels deep. */
export function parseJson(text: string): Json {
  let at = 0;
  const path: (string | number)[] = [];

  const describe = () =>
    at >= text.length ? "the end of the text" : JSON.stringify(String.fromCodePoint(text.codePointAt(at)!));
  const fail = (expected: string): never => {
    throw new JsonSyntaxError(`expected ${expected}, found ${describe()}`, text, at);
  };
  const space = () => {
    SPACE.lastIndex = at;
    SPACE.test(text);
    at = SPACE.lastIndex;
  };

  function readString(): string {
    let value = "";
    at++;
    for (;;) {
      PLAIN.lastIndex = at;
      const plain = PLAIN.exec(text)?.[0];
      if (plain !== undefined) {
        value += plain;
        at += plain.length;
      }
      const char = text[at];
      if (char === '"') break;
      if (char !== "\\") fail(char === undefined ? 'a closing "' : "an escaped control character");
      const escaped = text[at + 1] ?? "";
      if (escaped === "u") {
        const hex = text.slice(at + 2, at + 6);
        if (!/^[0-9a-fA-F]{4}$/.test(hex)) fail("\\u and four hexadecimal digits");
        value += String.fromCharCode(Number.parseInt(hex, 16));
        at += 6;
      } else {
        value += ESCAPES[escaped] ?? fail('one of \\" \\\\ \\/ \\b \\f \\n \\r \\t \\u');
        at += 2;
      }
    }
    at++;
    return value;
  }

  function readNumber(): number {
    NUMBER.lastIndex = at;
    const source = NUMBER.exec(text)?.[0] ?? fail("a JSON value");
    at += source.length;
    const value = Number(source);
    const refusal = refuseNumber(source, value);
    if (refusal !== undefined)
      throw new JsonValueError(
        refusal,
        [...path],
        source.slice(0, 40),
        "a number that a double keeps exactly, or a string",
      );
    return value;
  }

  function readObject(): Json {
    const value: { [key: string]: Json } = {};
    const seen = new Set<string>();
    at++;
    space();
    if (text[at] === "}") {
      at++;
      return value;
    }
    for (;;) {
      space();
      if (text[at] !== '"') fail("a key in double quotes");
      const key = readString();
      refuseText(key, path, "key");
      if (seen.has(key))
        throw new JsonValueError("the key is given twice", [...path, key], "two values", "one value per key");
      seen.add(key);
      space();
      if (text[at] !== ":") fail('":"');
      at++;
      path.push(key);
      const item = readValue();
      path.pop();
      // Assigning to `__proto__` would change the object instead of the data.
      if (key === "__proto__")
        Object.defineProperty(value, key, { value: item, enumerable: true, writable: true, configurable: true });
      else value[key] = item;
      space();
      if (text[at] === "}") break;
      if (text[at] !== ",") fail('"," or "}"');
      at++;
    }
    at++;
    return value;
  }

  function readArray(): Json {
    const value: Json[] = [];
    at++;
    space();
    if (text[at] === "]") {
      at++;
      return value;
    }
    for (;;) {
      path.push(value.length);
      value.push(readValue());
      path.pop();
      space();
      if (text[at] === "]") break;
      if (text[at] !== ",") fail('"," or "]"');
      at++;
    }
    at++;
    return value;
  }

  function readWord(word: string, value: null | boolean): Json {
    if (!text.startsWith(word, at)) fail("a JSON value");
    at += word.length;
    return value;
  }

  function readValue(): Json {
    space();
    const char = text[at];
    if (char === "{" || char === "[") {
      if (path.length >= DEEPEST_JSON) {
        throw new JsonValueError(
          "the JSON is nested too deep",
          path.slice(0, 3),
          `more than ${DEEPEST_JSON} levels`,
          `at most ${DEEPEST_JSON} levels`,
        );
      }
      return char === "{" ? readObject() : readArray();
    }
    if (char === '"') {
      const value = readString();
      refuseText(value, path, "text");
      return value;
    }
    if (char === "t") return readWord("true", true);
    if (char === "f") return readWord("false", false);
    if (char === "n") return readWord("null", null);
    return readNumber();
  }

  const value = readValue();
  space();
  if (at < text.length) fail("the end of the text");
  return value;
}

/** NUL and lone surrogates: legal in JSON, but no text PostgreSQL can hold. Throws JsonValueError. */
function refuseText(text: string, path: readonly (string | number)[], what: "key" | "text"): void {
  const fault = faultOfText(text);
  if (fault !== undefined) {
    throw new JsonValueError(
      `the ${what} holds ${fault}, which cannot be stored`,
      [...path],
      fault,
      "text without NUL and lone surrogates",
    );
  }
}

export function faultOfText(text: string): "a NUL character" | "a lone surrogate" | undefined {
  if (text.includes("\u0000")) return "a NUL character";
  return text.isWellFormed() ? undefined : "a lone surrogate";
}

/** A body may be one number: a pattern for zeros at the end would look for the end behind each of them. */
function significantDigits(source: string): string {
  const digits = source.split(/[eE]/, 1)[0]!.replace(/[-.]/g, "");
  let [begin, end] = [0, digits.length];
  while (digits[begin] === "0") begin++;
  while (end > begin && digits[end - 1] === "0") end--;
  return digits.slice(begin, end);
}

function refuseNumber(source: string, value: number): string | undefined {
  if (!Number.isFinite(value)) return "the number is too large for a double";
  if (/^-?\d+$/.test(source)) {
    if (Object.is(value, -0)) return "negative zero would be stored as 0";
    return Number.isSafeInteger(value)
      ? undefined
      : "the integer is beyond 2^53-1 and would be rounded: send it as a string";
  }
  const digits = significantDigits(source);
  if (value === 0) {
    if (digits !== "") return "the number is too small for a double";
    return Object.is(value, -0) ? "negative zero would be stored as 0" : undefined;
  }
  // 17 significant digits tell any two doubles apart; whoever sends more means more than a double holds.
  return digits.length > 17
    ? "the number has more than 17 significant digits and would be rounded: send it as a string"
    : undefined;
}

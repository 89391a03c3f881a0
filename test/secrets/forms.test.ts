import { expect, it } from "vitest";
import { z } from "zod";
import { mayHoldForms, readForms } from "../../src/domain/secrets/forms.ts";
import { knowSecrets, NO_SECRETS } from "../../src/domain/secrets/known.ts";
import { findMarked, hasMarks, secret } from "../../src/domain/secrets/marks.ts";

const scrub = (value: unknown, text: string) => knowSecrets([{ path: [], value }]).scrub(text);

it("a secret is found wherever it stands, with what it holds", () => {
  const sent = {
    a: { $secret: "x" },
    list: [1, { b: { $secret: { deep: [1] } } }],
    kept: { $secret: null, $version: "v" },
  };
  expect(readForms(sent)).toEqual({
    forms: [
      { kind: "new", path: ["a"], value: "x" },
      { kind: "new", path: ["list", 1, "b"], value: { deep: [1] } },
      { kind: "kept", path: ["kept"], version: "v" },
    ],
    fault: undefined,
  });
});

it.each([
  [{ a: { $sealed: "v1.x" } }, ["a"], "cannot be sent"],
  [{ a: { $secret: "x", more: 1 } }, ["a"], "more than a secret"],
  [{ a: { $secret: "x", $version: "v" } }, ["a"], "more than a secret"],
  [{ a: { $secret: null, more: 1 } }, ["a"], "more than a secret"],
  [{ a: { $secret: null, $version: 7 } }, ["a"], "more than a secret"],
  [{ a: { $secret: { b: [{ $secret: "x" }] } } }, ["a"], "inside a secret"],
  [{ a: { $secret: { b: { $sealed: "x" } } } }, ["a"], "inside a secret"],
  [{ a: { $Secret: "x" } }, ["a"], "not how a secret is written"],
  [{ a: { " $secrets": "x" } }, ["a"], "not how a secret is written"],
  [{ a: { $_secret: "x" } }, ["a"], "not how a secret is written"],
])("what looks like a secret and is none is refused: %j", (sent, path, message) => {
  expect(mayHoldForms(JSON.stringify(sent))).toBe(true);
  const { fault } = readForms(sent as never);
  expect(fault).toMatchObject({ path });
  expect(fault!.message).toContain(message);
});

it("other fields with a dollar sign are the caller's own", () => {
  const sent = { $match: { $ref: "#/a" }, text: "$secret", $version: 1 };
  expect(readForms(sent)).toEqual({ forms: [], fault: undefined });
  expect(mayHoldForms(JSON.stringify({ ...sent, text: "$x" }))).toBe(false);
});

it("a mark stays with what is made of a schema, and is found through whatever wraps it", () => {
  const schema = z.strictObject({
    plain: z.string(),
    later: secret(z.string()).min(2).describe("said later").optional(),
    before: secret(z.string().describe("said before")).nullable().default("x"),
    list: z.array(z.object({ token: secret(z.string()) })).optional(),
    by: z.record(z.string(), secret(z.string())).optional(),
    pair: z.tuple([z.string(), secret(z.number())]).optional(),
    either: z.union([z.string(), z.object({ key: secret(z.string()) })]).optional(),
    piped: secret(z.string())
      .transform((text) => text.length)
      .optional(),
    whole: secret(z.object({ user: z.string() })).optional(),
    both: z.intersection(z.object({ a: z.string() }), z.object({ b: secret(z.string()) })).optional(),
    lazy: z.lazy(() => z.object({ in: secret(z.string()) })).optional(),
  });
  const value = {
    plain: "p",
    later: "l",
    before: null,
    list: [{ token: "t" }, {}],
    by: { x: "1" },
    pair: ["a", 2],
    either: { key: "k" },
    piped: "p",
    whole: { user: "u" },
    both: { a: "a", b: "b" },
    lazy: { in: "i" },
  };
  expect(findMarked(schema, value).map((path) => path.join("."))).toEqual([
    "later",
    "list.0.token",
    "by.x",
    "pair.1",
    "either.key",
    "piped",
    "whole",
    "both.b",
    "lazy.in",
  ]);
  expect(hasMarks(schema)).toBe(true);
  expect(hasMarks(z.strictObject({ a: z.array(z.string()), b: z.record(z.string(), z.number()) }))).toBe(false);
  expect(hasMarks(z.record(z.string(), z.array(secret(z.string()))))).toBe(true);
  type Tree = { children: Tree[] };
  const tree: z.ZodType<Tree> = z.lazy(() => z.object({ children: z.array(tree) }));
  expect(hasMarks(tree)).toBe(false);
  expect(JSON.stringify(z.toJSONSchema(z.object({ s: secret(z.string()) })))).toContain('"writeOnly":true');
});

it("a secret is taken out of texts in every form that others write it in", () => {
  const value = 'Ä "quiet" & /path+1\\ ';
  const base64 = Buffer.from(value).toString("base64");
  const forms = [
    value,
    JSON.stringify(value),
    JSON.stringify(JSON.stringify({ value })),
    encodeURIComponent(value),
    encodeURIComponent(value).toLowerCase().replace("%c3%84", "%c3%84"),
    new URLSearchParams({ value }).toString(),
    base64,
    base64.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, ""),
    Buffer.from(value).toString("hex"),
    Buffer.from(value).toString("hex").toUpperCase(),
    value.replaceAll("&", "&amp;").replaceAll('"', "&quot;"),
  ];
  for (const form of forms) {
    const text = scrub(value, `before ${form} after`);
    expect(text, form).toContain("[secret]");
    expect(text, form).not.toMatch(/quiet|path/i);
  }
  for (const before of ["", "u:", "us:", "use:"]) {
    const text = scrub(value, Buffer.from(`${before}${value}x`).toString("base64"));
    expect(Buffer.from(text.replaceAll("[secret]", ""), "base64").toString()).not.toMatch(/uie|pat/);
  }
});

it("every text and number of a secret object is taken out, what is shorter than four characters is not, nor are names", () => {
  const value = { user: "the-user", pin: 4711, short: "abc", on: true, list: ["in a list"] };
  expect(scrub(value, "user the-user pin 4711 abc true in a list")).toBe(
    "user [secret] pin [secret] abc true [secret]",
  );
  const pem = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG\nw0BAQEFAASCBKcwggSj\n";
  expect(scrub(pem, "a line: w0BAQEFAASCBKcwggSj")).toBe("a line: [secret]");
  expect(scrub("a.c(d", "abc(d")).toBe("abc(d");
  expect(NO_SECRETS.scrub("as it is")).toBe("as it is");
});

it("of secrets that begin alike or overlap the longest is taken out, each time it stands there", () => {
  const value = ["abab", "ababab", "ababac", "bach", "zz", "secret"];
  expect(scrub(value, "ababababa ababach ababad abab bach aba zz [secret]")).toBe(
    "[secret]aba [secret]h [secret]ad [secret] [secret] aba zz [[secret]]",
  );
  const many = Array.from({ length: 2_000 }, (_, i) => `beginning-${i}`);
  expect(scrub(many, "beginning-1999, beginning-19, beginning-x, beginning-20000")).toBe(
    "[secret], [secret], beginning-x, [secret]00",
  );
});

it("a secret as large as a payload may be is taken out like any other, and said by no complaint", () => {
  const keyRing = Array.from({ length: 900 }, (_, i) =>
    Buffer.from(`a line of a key ring, number ${i} Ä`).toString("base64"),
  );
  const secret = keyRing.join("\n");
  expect(secret.length).toBeGreaterThan(40_000);
  expect(scrub(secret, `all of it: ${secret}`)).toBe("all of it: [secret]");
  expect(scrub(secret, `${JSON.stringify({ secret })} and ${keyRing[700]}`)).toBe('{"secret":"[secret]"} and [secret]');
  expect(scrub("s".repeat(60_000), "s".repeat(59_999))).toBe("s".repeat(59_999));
});

it("a JSON value stays one when a number or a name in it was secret", () => {
  const { scrubJson } = knowSecrets([{ path: [], value: [4711, "quiet-name"] }]);
  expect(scrubJson({ a: 4711, b: [4711.5, 12], "quiet-name": { c: null } })).toEqual({
    a: "[secret]",
    b: ["[secret]", 12],
    "[secret]": { c: null },
  });
});

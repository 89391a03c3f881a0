import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { slowPatternsIn } from "./regular-expressions.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

it("no text that somebody sends keeps a regular expression busy for longer than reading it takes", () => {
  const sources = readdirSync(`${root}/src`, { recursive: true, encoding: "utf8" }).filter((path) =>
    path.endsWith(".ts"),
  );
  expect(sources.length).toBeGreaterThan(100);
  expect(sources.flatMap((path) => slowPatternsIn(`src/${path}`, readFileSync(`${root}/src/${path}`, "utf8")))).toEqual(
    [],
  );
});

it.each([
  String.raw`const a = /\{\{\s*([^{}]*?)\s*\}\}/g;`,
  String.raw`f(text.replace(/\/\/.*@/s, ""));`,
  String.raw`const { test } = { test: () => /^(https?:\/\/[^/?#]+)([^?#]*)$/.test(text) };`,
  'digits.replace(/^0+|0+$/g, "")',
  "/^(a+)+$/.test(text)",
])("one that does is found: %s", (text) => {
  expect(slowPatternsIn("src/domain/a.ts", text)).toHaveLength(1);
});

import { readdirSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { workSchema } from "../../src/domain/definition.ts";
import { httpJobSchema } from "../../src/domain/jobs/http.ts";
import { JOB_PLACEHOLDERS } from "../../src/domain/jobs/template.ts";
import { codeIn, root, tableIn } from "./table.ts";

/** What docs/jobs.md says of HTTP jobs, held against the program. */
const PAGE = "docs/jobs.md";
const section = readFileSync(`${root}/${PAGE}`, "utf8").split("\n## HTTP jobs\n")[1]!.split("\n## ")[0]!;

test("the example is a job", () => {
  const { payload, ...work } = JSON.parse(/```json\n([\s\S]*?)```/.exec(section)![1]!) as Record<string, unknown>;
  expect(payload).toBeTypeOf("object");
  expect(workSchema.parse(work).job).toMatchObject({ kind: "http", timeoutMs: 60_000 });
});

test("every field and its default is in the table", () => {
  const rows = tableIn(PAGE, "field of an HTTP job").map(([field, value]) => [codeIn(field)[0]!, codeIn(value)[0]]);
  const fields = Object.keys(httpJobSchema.shape).filter((field) => field !== "kind");
  expect(rows.map(([field]) => field)).toEqual(fields);
  const defaults = httpJobSchema.parse({ kind: "http", url: "https://example.com/" }) as Record<string, unknown>;
  const shown = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  for (const [field, said] of rows) {
    if (said === undefined) continue;
    const value = /^[[{"]/.test(said) ? JSON.stringify(JSON.parse(said)) : said;
    expect([field, value]).toEqual([field, shown(defaults[field!])]);
  }
});

test("every code of a failure is in the table, and no other", () => {
  const folder = `${root}/src/handlers/http`;
  const sources = readdirSync(folder).map((name) => readFileSync(`${folder}/${name}`, "utf8"));
  const codes = sources.flatMap((source) =>
    [...source.matchAll(/["`]((?:http|dns|target|response|signing|rules)-(?:[a-z-]+|\$\{\w+\}))["`]/g)].map(
      ([, code]) => code!.replace(/\$\{\w+\}/, "<status>"),
    ),
  );
  const told = tableIn(PAGE, "what happens to a call").flatMap(([, code]) => codeIn(code));
  // Whoever issues callbacks says that it cannot.
  expect(new Set(told)).toEqual(new Set([...codes, "callback-unavailable"]));
});

test("every placeholder is named", () => {
  for (const name of JOB_PLACEHOLDERS) expect(section).toContain(`{{${name.replace("<field>…", "a.b")}}}`);
});

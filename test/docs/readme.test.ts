import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { root } from "./table.ts";

const linesOf = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .join("\n");

it("README.md quotes the stale-worker test word for word", () => {
  const readme = readFileSync(`${root}/README.md`, "utf8");
  const section = readme.slice(readme.indexOf("## The test that matters"));
  const quote = /```ts\n([\s\S]*?)```/.exec(section)![1]!;
  const test = linesOf(readFileSync(`${root}/test/authority/stale-worker.test.ts`, "utf8"));
  const [helper, story] = quote.split(/\n(?=it\()/);
  expect(story).toContain('toMatchObject({ kind: "stale-fence" })');
  for (const part of [helper!, story!]) expect(test).toContain(linesOf(part).trim());
});

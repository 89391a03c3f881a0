import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { codeIn, root, tableIn } from "./table.ts";

it("docs/decisions/dependencies.md has a line for every package, and none for packages that left", () => {
  const { dependencies, devDependencies } = JSON.parse(readFileSync(`${root}/package.json`, "utf8"));
  const text = readFileSync(`${root}/docs/decisions/dependencies.md`, "utf8");
  const development = text.slice(text.indexOf("## For development"));
  const listed = (rows: string[][]) => rows.flatMap(([name]) => codeIn(name));

  expect(listed(tableIn("docs/decisions/dependencies.md", "package"))).toEqual(Object.keys(dependencies).sort());
  const developmentRows = development
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) => line.split("|").slice(1));
  expect(listed(developmentRows)).toEqual(Object.keys(devDependencies).sort());
});

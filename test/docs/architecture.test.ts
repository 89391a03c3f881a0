import { expect, it } from "vitest";
import { MAY_IMPORT } from "../architecture/rules.ts";
import { codeIn, tableIn } from "./table.ts";

it("ARCHITECTURE.md has the import table that the architecture test enforces", () => {
  const documented = tableIn("ARCHITECTURE.md", "folder").map(([folder, , imports = ""]) => [
    codeIn(folder)[0]?.replace("src/", ""),
    imports === "nothing of ours" ? [] : imports.split(", "),
  ]);
  // The client and the console speak to the public HTTP API only; they are listed when they exist.
  const { client, console, ...enforced } = MAY_IMPORT;
  expect([client, console]).toEqual([[], ["client"]]);
  expect(Object.fromEntries(documented)).toEqual(enforced);
});

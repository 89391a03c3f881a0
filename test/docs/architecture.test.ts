import { expect, it } from "vitest";
import { MAY_IMPORT } from "../architecture/rules.ts";
import { codeIn, tableIn } from "./table.ts";

it("ARCHITECTURE.md has the import table that the architecture test enforces", () => {
  const documented = tableIn("ARCHITECTURE.md", "folder").map(([folder, , imports = ""]) => [
    codeIn(folder)[0]?.replace("src/", ""),
    imports === "nothing of ours" ? [] : imports.split(", "),
  ]);
  // The console speaks to the public HTTP API only; it is listed when it exists.
  const { console, ...enforced } = MAY_IMPORT;
  expect(console).toEqual(["client"]);
  expect(Object.fromEntries(documented)).toEqual(enforced);
});

import { expect, it } from "vitest";
import { CHECK_IDS } from "../../src/app/doctor/doctor.ts";
import { codeIn, tableIn } from "./table.ts";

it("docs/cli.md has every check of the doctor, and no other", () => {
  const documented = tableIn("docs/cli.md", "check").flatMap(([ids]) => codeIn(ids));
  expect(documented.toSorted()).toEqual(CHECK_IDS.toSorted());
});

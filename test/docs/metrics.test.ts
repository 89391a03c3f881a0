import { expect, it } from "vitest";
import { exportedMetrics } from "../ops/exported-metrics.ts";
import { codeIn, tableIn } from "./table.ts";

it("docs/metrics.md has every metric with its kind, labels and help", () => {
  const documented = tableIn("docs/metrics.md", "metric").map((row) => ({
    name: codeIn(row[0])[0],
    kind: row[1],
    labels: codeIn(row[2]),
    help: row[3],
  }));
  expect(documented).toEqual(exportedMetrics());
});

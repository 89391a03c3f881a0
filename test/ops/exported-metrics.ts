import { Counter, Gauge, Histogram } from "prom-client";
import { createMetrics } from "../../src/kernel/metrics.ts";

export type ExportedMetric = { name: string; kind: string; labels: readonly string[]; help: string };

/** What `createMetrics()` registers, in its order. */
export function exportedMetrics(): ExportedMetric[] {
  return Object.values(createMetrics()).flatMap((metric) => {
    const kind = metric instanceof Histogram ? "histogram" : metric instanceof Counter ? "counter" : "gauge";
    if (kind === "gauge" && !(metric instanceof Gauge)) return []; // the registry itself
    // prom-client keeps these on the instance but not in its types.
    const { name, help, labelNames } = metric as unknown as { name: string; help: string; labelNames: string[] };
    return [{ name, kind, labels: labelNames, help }];
  });
}

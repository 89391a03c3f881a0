import { runDurations } from "../handlers/jobs/run-durations.ts";
import { runSummary } from "../handlers/jobs/run-summary.ts";
import { createRegistry, type JobRegistry } from "../handlers/registry.ts";

/** The jobs this program can run. A job of your own goes here: defineJob in src/handlers/registry.ts. */
export function registerJobs(): JobRegistry {
  return createRegistry([runSummary, runDurations]);
}

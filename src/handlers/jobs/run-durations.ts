import { z } from "zod";
import { defineThreadJob } from "../registry.ts";
import { periodInput } from "./period.ts";

export const runDurationsInput = z
  .strictObject({
    period: periodInput,
    by: z.enum(["schedule", "class", "hour"]).default("schedule").describe("What is a line of the report"),
  })
  .describe("How long the tenant's runs of a period waited and worked, in exact percentiles: a CSV file");

/** Sorting the times of a million runs takes seconds in which nothing else would happen: it has a thread for that. */
export const runDurations = defineThreadJob({
  name: "report.run-durations",
  version: 1,
  input: runDurationsInput,
  module: new URL("./run-durations/thread.ts", import.meta.url).href,
});

import { z } from "zod";
import { defineJob } from "../../src/handlers/registry.ts";

/** Does nothing, whatever it is given: for tests and measurements of everything around a job. */
export const demoNoop = defineJob({ name: "demo.noop", version: 1, input: z.unknown(), run: () => undefined });

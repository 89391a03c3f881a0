import { z } from "zod";
import { findFaults } from "./input/issues.ts";
import type { FieldFault } from "./problems/problem.ts";

/** The registered jobs, as the API needs them: to list them, and to refuse a schedule that no worker could ever run. */
export type JobType = {
  kind: "function";
  name: string;
  version: number;
  description: string;
  /** JSON Schema of the payload. */
  input: Record<string, unknown>;
};

export type JobCatalogue = {
  list(): readonly JobType[];
  /** What is wrong with a payload for that job; empty when it fits. Undefined when there is no such job. */
  check(job: { name: string; version: number }, payload: unknown): readonly FieldFault[] | undefined;
};

/** The catalogue of these jobs (the handlers' registry has them; this room knows only what it needs of one). */
export function createJobCatalogue(jobs: readonly { name: string; version: number; input: z.ZodType }[]): JobCatalogue {
  const types = jobs.map(
    ({ name, version, input }): JobType => ({
      kind: "function",
      name,
      version,
      description: input.description ?? "",
      input: z.toJSONSchema(input, { io: "input", unrepresentable: "any" }) as Record<string, unknown>,
    }),
  );
  return {
    list: () => types,
    check(job, payload) {
      const found = jobs.find((one) => one.name === job.name && one.version === job.version);
      return found && findFaults(found.input, payload, "payload");
    },
  };
}

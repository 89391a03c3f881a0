import { z } from "zod";
import type { Job } from "../domain/jobs/job.ts";
import type { Path } from "../domain/secrets/forms.ts";
import { type KnownSecrets, NO_SECRETS } from "../domain/secrets/known.ts";
import { findMarked, hasMarks } from "../domain/secrets/marks.ts";
import { findFaults } from "./input/issues.ts";
import { withoutSecrets } from "./input/secret-faults.ts";
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
  /**
   * What is wrong with a payload for that job; empty when it fits. Undefined when there is no such function. What tenants bring
   * themselves takes any payload.
   */
  check(job: Job, payload: unknown, secrets?: KnownSecrets): readonly FieldFault[] | undefined;
  /** Whether the job's input marks any field as secret. */
  marksSecrets(job: Job): boolean;
  /** Where this payload has what the job's input marks as secret. */
  findSecrets(job: Job, payload: unknown): readonly Path[];
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
  const find = (job: Job) =>
    job.kind === "function" ? jobs.find((one) => one.name === job.name && one.version === job.version) : undefined;
  return {
    list: () => types,
    check(job, payload, secrets = NO_SECRETS) {
      if (job.kind !== "function") return [];
      const found = find(job);
      return found && withoutSecrets(findFaults(found.input, payload, "payload"), secrets, "payload");
    },
    marksSecrets(job) {
      const found = find(job);
      return found !== undefined && hasMarks(found.input);
    },
    findSecrets(job, payload) {
      const found = find(job);
      return found === undefined ? [] : findMarked(found.input, payload);
    },
  };
}

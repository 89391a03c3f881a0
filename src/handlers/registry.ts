import { closest, distance } from "fastest-levenshtein";
import type { z } from "zod";
import type { KnownSecrets } from "../domain/secrets/known.ts";
import { bug } from "../kernel/errors.ts";
import type { JobContext, JobResult } from "./context.ts";
import { explainInput } from "./input.ts";
import { permanentFailure } from "./outcome.ts";

/** A job as the registry holds it: its input type is known only inside. */
export type DefinedJob = {
  name: string;
  /** Counts up when the input or the meaning changes; old schedules go on with the version they name. */
  version: number;
  /** What the payload must look like; for docs and for refusing a schedule at creation. */
  input: z.ZodType;
  /** Checks the payload, then works. @throws JobFailure `job-input-invalid` when it is not acceptable. */
  run(ctx: JobContext, payload: unknown, secrets?: KnownSecrets): Promise<JobResult>;
};

/** Declares a job kind: `run` receives the payload as `input` parsed it. */
export function defineJob<Input extends z.ZodType>(job: {
  name: string;
  version: number;
  input: Input;
  run(ctx: JobContext, input: z.output<Input>): Promise<JobResult> | JobResult;
}): DefinedJob {
  return {
    name: job.name,
    version: job.version,
    input: job.input,
    async run(ctx, payload, secrets) {
      const parsed = job.input.safeParse(payload, { reportInput: true });
      if (!parsed.success) throw permanentFailure("job-input-invalid", explainInput(parsed.error, secrets));
      return job.run(ctx, parsed.data);
    },
  };
}

export type JobRegistry = {
  jobs: readonly DefinedJob[];
  find(name: string, version: number): DefinedJob | undefined;
  /** @throws JobFailure `job-unknown` (permanent) that says what there is instead. */
  get(name: string, version: number): DefinedJob;
};

/** @throws bug when two jobs claim the same name and version. */
export function createRegistry(jobs: readonly DefinedJob[]): JobRegistry {
  const byId = new Map<string, DefinedJob>();
  for (const job of jobs) {
    const id = idOf(job.name, job.version);
    if (byId.has(id)) throw bug("Two jobs have the same name and version", { job: id });
    byId.set(id, job);
  }
  const find = (name: string, version: number) => byId.get(idOf(name, version));
  return {
    jobs,
    find,
    get(name, version) {
      const job = find(name, version);
      if (job === undefined) {
        throw permanentFailure("job-unknown", `No job is called ${idOf(name, version)} here${suggest(jobs, name)}`);
      }
      return job;
    },
  };
}

const idOf = (name: string, version: number) => `${name}@${version}`;

function suggest(jobs: readonly DefinedJob[], name: string): string {
  const versions = jobs.filter((job) => job.name === name).map((job) => job.version);
  if (versions.length > 0) return `; its versions are ${versions.join(", ")}`;
  const names = [...new Set(jobs.map((job) => job.name))];
  if (names.length === 0) return "; none is registered";
  const near = closest(name, names);
  if (distance(name, near) <= Math.max(2, name.length / 3)) return `; did you mean ${near}?`;
  return `; there are ${names.slice(0, SHOWN).join(", ")}${names.length > SHOWN ? ", …" : ""}`;
}

const SHOWN = 10;

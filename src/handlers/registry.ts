import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { closest, distance } from "fastest-levenshtein";
import type { z } from "zod";
import type { Job } from "../domain/jobs/job.ts";
import type { KnownSecrets } from "../domain/secrets/known.ts";
import { operatorError } from "../kernel/errors.ts";
import type { JobContext, JobResult } from "./context.ts";
import { explainInput } from "./input.ts";
import { permanentFailure } from "./outcome.ts";
import type { ThreadPool } from "./threads/pool.ts";

/** A job as the registry holds it: its input type is known only inside. */
export type DefinedJob = {
  name: string;
  /** Counts up when the input or the meaning changes; old schedules go on with the version they name. */
  version: number;
  /** What the payload must look like; for docs and for refusing a schedule at creation. */
  input: z.ZodType;
  /** Checks the payload, then works. @throws JobFailure `job-input-invalid` when it is not acceptable. */
  run(ctx: JobContext, payload: unknown, secrets?: KnownSecrets, threads?: Pick<ThreadPool, "run">): Promise<JobResult>;
  /** Whether it leaves the event loop of its worker alone. */
  inThread?: true;
  /** Where its work is, if that is not here. */
  module?: string;
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
    run: async (ctx, payload, secrets) => job.run(ctx, readInput(job.input, payload, secrets)),
  };
}

/**
 * Declares a job that computes for long: it runs in a thread of its own, where it holds up nobody's heartbeat.
 * `module`: `new URL("./it.ts", import.meta.url).href`; that module exports `run(ctx, input)`, as defineJob is given one.
 */
export function defineThreadJob<Input extends z.ZodType>(job: {
  name: string;
  version: number;
  /** What it makes of a payload must be what can be sent to a thread: data, no functions. */
  input: Input;
  module: string;
}): DefinedJob {
  return {
    name: job.name,
    version: job.version,
    input: job.input,
    inThread: true,
    module: job.module,
    async run(ctx, payload, secrets, threads) {
      const input = readInput(job.input, payload, secrets);
      if (threads === undefined) throw permanentFailure("threads-unavailable", "This worker has no threads for jobs");
      return threads.run(ctx, job.module, input);
    },
  };
}

function readInput<Input extends z.ZodType>(input: Input, payload: unknown, secrets?: KnownSecrets): z.output<Input> {
  const parsed = input.safeParse(payload, { reportInput: true });
  if (!parsed.success) throw permanentFailure("job-input-invalid", explainInput(parsed.error, secrets));
  return parsed.data;
}

export type JobRegistry = {
  jobs: readonly DefinedJob[];
  find(name: string, version: number): DefinedJob | undefined;
  /** @throws JobFailure `job-unknown` (permanent) that says what there is instead. */
  get(name: string, version: number): DefinedJob;
  /** The registered function that this job is; undefined for jobs of other kinds. */
  functionOf(job: Job): DefinedJob | undefined;
};

/** @throws operatorError `jobs-invalid` when two jobs claim the same name and version, or the module of one is not there. */
export function createRegistry(jobs: readonly DefinedJob[]): JobRegistry {
  const byId = new Map<string, DefinedJob>();
  for (const job of jobs) {
    const id = idOf(job.name, job.version);
    if (byId.has(id)) throw operatorError("jobs-invalid", `Two jobs have the same name and version: ${id}`);
    if (job.module !== undefined) checkModule(id, job.module);
    byId.set(id, job);
  }
  const find = (name: string, version: number) => byId.get(idOf(name, version));
  return {
    jobs,
    find,
    functionOf: (job) => (job.kind === "function" ? find(job.name, job.version) : undefined),
    get(name, version) {
      const job = find(name, version);
      if (job === undefined) {
        throw permanentFailure("job-unknown", `No job is called ${idOf(name, version)} here${suggest(jobs, name)}`);
      }
      return job;
    },
  };
}

/** Found out at the start, not by the first run. */
function checkModule(id: string, module: string): void {
  const url = URL.parse(module);
  if (url === null) {
    const allowed = 'new URL("./it.ts", import.meta.url).href';
    throw operatorError("jobs-invalid", `The module of ${id} is no URL: found "${module}"; allowed: ${allowed}`);
  }
  if (url.protocol !== "file:" || existsSync(url)) return;
  throw operatorError("jobs-invalid", `The module of ${id} is not there: ${fileURLToPath(url)}`);
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

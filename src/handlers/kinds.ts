import type { Payload } from "../domain/definition.ts";
import type { Job, JobKind } from "../domain/jobs/job.ts";
import { type KnownSecrets, NO_SECRETS } from "../domain/secrets/known.ts";
import type { JobContext, JobResult } from "./context.ts";
import type { MainThread } from "./main-thread.ts";
import { permanentFailure } from "./outcome.ts";
import type { JobRegistry } from "./registry.ts";
import type { ThreadPool } from "./threads/pool.ts";

/** Jobs that a worker of ours runs; the others are run by the tenant's own. */
type OwnKind = Exclude<JobKind, "remote">;

/** Runs one attempt of jobs of a kind. The payload comes opened; what it throws is told without `secrets`. */
export type JobKindRunner<Kind extends JobKind = JobKind> = (
  ctx: JobContext,
  job: Extract<Job, { kind: Kind }>,
  payload: Payload,
  secrets: KnownSecrets,
) => Promise<JobResult>;

/** What one worker can run: its registered functions, and the kinds that its operator has set up. */
export type JobKinds = { [Kind in OwnKind]?: JobKindRunner<Kind> };

/** Where functions run: those that compute in threads, the others on the main thread, where it is known who they are. */
export type FunctionPlaces = {
  threads?: Pick<ThreadPool, "run"> | undefined;
  mainThread?: Pick<MainThread, "occupy"> | undefined;
};

export const runFunctions =
  (registry: JobRegistry, places: FunctionPlaces = {}): JobKindRunner<"function"> =>
  (ctx, { name, version }, payload, secrets) => {
    const job = registry.get(name, version);
    const run = () => job.run(ctx, payload, secrets, places.threads);
    if (job.inThread || places.mainThread === undefined) return run();
    return places.mainThread.occupy({ job: `${name}@${version}`, run: ctx.run.id, attempt: ctx.run.attempt }, run);
  };

/** @throws JobFailure `job-kind-unavailable` (permanent) where this worker was not set up for jobs of that kind. */
export function runJob(
  kinds: JobKinds,
  ctx: JobContext,
  job: Job,
  payload: Payload,
  secrets: KnownSecrets = NO_SECRETS,
): Promise<JobResult> {
  const run = kinds[job.kind as OwnKind] as JobKindRunner | undefined;
  if (run === undefined) {
    throw permanentFailure(
      "job-kind-unavailable",
      `This worker runs no ${job.kind} jobs: its operator has not set them up`,
    );
  }
  return run(ctx, job, payload, secrets);
}

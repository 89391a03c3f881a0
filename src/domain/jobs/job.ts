import { z } from "zod";
import { containerJobSchema } from "./container.ts";
import { functionJobSchema, remoteJobSchema } from "./function.ts";
import { httpJobSchema } from "./http.ts";
import { queueJobSchema } from "./queue.ts";

/** The work itself: a kind and what that kind needs. */
export const jobSchema = z
  .discriminatedUnion("kind", [functionJobSchema, remoteJobSchema, httpJobSchema, containerJobSchema, queueJobSchema])
  .describe("The work itself: a kind and what that kind needs");
export type Job = z.infer<typeof jobSchema>;
export type JobKind = Job["kind"];
export const JOB_KINDS = ["function", "remote", "http", "container", "queue"] as const satisfies readonly JobKind[];

/** Kinds whose jobs have names of their own; the others are called by their kind. */
const NAMED = ["function", "remote"] as const satisfies readonly JobKind[];
type NamedJob = Extract<Job, { kind: (typeof NAMED)[number] }>;

const isNamed = (job: Job): job is NamedJob => (NAMED as readonly string[]).includes(job.kind);

/** What a tenant may be held to: the name of a job that has one, else its kind. */
export const jobTypeOf = (job: Job): string => (isNamed(job) ? job.name : job.kind);

/** `report.run-summary@1`, or the kind: a bounded set of words, also for metrics. */
export const jobLabelOf = (job: Job): string => (isNamed(job) ? `${job.name}@${job.version}` : job.kind);

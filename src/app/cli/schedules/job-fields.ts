import type { Job } from "../../../client/types.ts";
import { jobSchema } from "../../../domain/jobs/job.ts";
import { changedFields } from "../../../domain/preview/field-diff.ts";
import { showJob } from "../words.ts";
import { differing, type Fields, showValue } from "./chosen.ts";

/** What the words of a job (showJob) do not say. */

const REQUIRED: readonly Fields[] = [
  { kind: "http", url: "https://example.com" },
  { kind: "container", image: "any" },
  { kind: "queue", broker: "bullmq", url: "redis://example.com", queue: "any" },
  { kind: "queue", broker: "amqp", url: "amqp://example.com", exchange: "any" },
];
const PLAIN: readonly Fields[] = REQUIRED.map((one) => jobSchema.parse(one));
const SAID = ["kind", "name", "version", "method", "image", "broker", "queue", "exchange", "routingKey"];

/** Every field that is not what nobody has to say, as `job.<field>`. */
export function showJobFields(job: Job | null): Record<string, string> {
  if (job === null) return {};
  const plain = PLAIN.find((one) => one.kind === job.kind && one.broker === job.broker) ?? {};
  const fields = Object.entries(differing(job, plain)).filter(
    ([name]) => !SAID.includes(name) && !(name === "url" && showJob(job).endsWith(` ${job.url}`)),
  );
  return Object.fromEntries(fields.map(([name, value]) => [`job.${name}`, showValue(name, value)]));
}

/** One line a field that differs; of two kinds of jobs, what each is. */
export function jobChanges(before: Job, after: Job): string[][] {
  if (before.kind !== after.kind || before.broker !== after.broker || before.name !== after.name) {
    const [was, is] = [showJobFields(before), showJobFields(after)];
    return [
      ["job", showJob(before), showJob(after)],
      ...Object.keys({ ...was, ...is }).map((name) => [name, was[name] ?? "", is[name] ?? ""]),
    ];
  }
  // What has a name is called by it and its version.
  if (before.name !== undefined) return [["job", showJob(before), showJob(after)]];
  return changeRows(changedFields(before, after).changes.map((one) => ({ ...one, field: `job.${one.field}` })));
}

/** Changes as the API tells them, as rows. */
export function changeRows(changes: readonly { field: string; from?: unknown; to?: unknown }[]): string[][] {
  return changes.map(({ field, from, to }) => [field, showValue(field, from), showValue(field, to)]);
}

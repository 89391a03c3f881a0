import type { Definition, Payload, Work } from "../../domain/definition.ts";
import type { RuleFault } from "../../domain/recurrence/compile.ts";
import type { ApiContext } from "../context.ts";
import { type FieldFault, Problem, sentenceOf } from "../problem.ts";
import { didYouMean } from "./did-you-mean.ts";
import { PAYLOAD_BYTES } from "./fields.ts";
import { showPath } from "./issues.ts";

/** Refuses work that no worker could ever do: a job nobody registered, a payload that is too large or not the job's. */
export function checkWork(context: ApiContext, work: Pick<Work, "job">, payload: Payload): void {
  const bytes = Buffer.byteLength(JSON.stringify(payload));
  if (bytes > PAYLOAD_BYTES) {
    throw new Problem("payload-too-large", `payload: found ${bytes} bytes; allowed: at most ${PAYLOAD_BYTES}`);
  }
  const faults = context.jobs.check(work.job, payload);
  if (faults === undefined) {
    const known = context.jobs.list();
    const meant = didYouMean(
      work.job.name,
      known.map((job) => job.name),
    );
    const fault: FieldFault = {
      field: "job",
      message: "no such job is registered",
      found: `${work.job.name}@${work.job.version}`,
      allowed: known.map((job) => `${job.name}@${job.version}`).join(", "),
      ...(meant === undefined || meant === work.job.name ? {} : { didYouMean: meant }),
    };
    throw new Problem("unknown-job", sentenceOf(fault), { errors: [fault] });
  }
  if (faults.length > 0) {
    const errors = faults.map((fault) => ({
      field: showPath(["payload", ...fault.path], "payload"),
      message: fault.message,
    }));
    throw new Problem("invalid-request", sentenceOf(errors[0]!), { errors });
  }
}

/** A rule that has the right shape and still cannot be: an unknown zone, a date that never comes. */
export function ruleProblem(fault: RuleFault): Problem {
  const error: FieldFault = {
    field:
      fault.field.startsWith("rule") || fault.field === "endAt" || fault.field === "startAt"
        ? fault.field
        : `rule.${fault.field}`,
    message: fault.message,
    found: fault.found,
    allowed: fault.allowed,
    ...(fault.suggestion === undefined ? {} : { didYouMean: fault.suggestion }),
  };
  return new Problem("invalid-rule", sentenceOf(error), { errors: [error] });
}

/** Fields that are fine one by one and make no sense together. */
export function checkWindow(definition: Pick<Definition, "startAt" | "endAt">): void {
  const { startAt, endAt } = definition;
  if (startAt === undefined || endAt === undefined || Date.parse(startAt) < Date.parse(endAt)) return;
  const fault: FieldFault = {
    field: "endAt",
    message: "is not after startAt",
    found: endAt,
    allowed: `later than ${startAt}`,
  };
  throw new Problem("invalid-request", sentenceOf(fault), { errors: [fault] });
}

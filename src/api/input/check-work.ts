import { judgeContainer } from "../../domain/containers/rules.ts";
import { type Definition, OWN_CLASSES, type ResourceClass, type Work } from "../../domain/definition.ts";
import type { Effect } from "../../domain/effects/definition.ts";
import type { FunctionJob } from "../../domain/jobs/function.ts";
import { JOB_KINDS, type Job } from "../../domain/jobs/job.ts";
import { compileRule, type RuleFault } from "../../domain/recurrence/compile.ts";
import { LAST_NOMINAL } from "../../domain/recurrence/compiled.ts";
import { outOfReach } from "../../domain/recurrence/moment.ts";
import type { Rule } from "../../domain/recurrence/rule.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { bytesOf } from "../../domain/secrets/size.ts";
import type { ApiContext } from "../context.ts";
import { type FieldFault, fieldProblem, type Problem, problemOfFaults } from "../problems/problem.ts";
import { didYouMean } from "./did-you-mean.ts";
import { showValue } from "./issues.ts";
import { refuseLargePayload } from "./payload-size.ts";
import type { GivenPayload } from "./secrets.ts";

/**
 * Refuses work that no worker could ever do: a job nobody registered, a payload that is too large or not the job's, an
 * attempt longer than its class allows, an effect that cannot be sent. What was accepted before is accepted still, also under a limit set lower since:
 * that cuts attempts, and breaks no schedule.
 */
export function checkWork(
  context: ApiContext,
  work: Work,
  { plain: payload, secrets }: Pick<GivenPayload, "plain" | "secrets">,
  before?: Work,
): void {
  refuseLargePayload(bytesOf(payload));
  const errors = context.jobs.check(work.job, payload, secrets);
  if (errors === undefined) throw unknownFunction(context, work.job as FunctionJob);
  if (errors.length > 0) throw problemOfFaults("invalid-request", errors);
  checkClass(work);
  checkContainer(context, work.job, before?.job);
  checkEffects(context, work.effects ?? [], before?.effects ?? []);
  if (before?.class === work.class && before.attemptTimeoutMs === work.attemptTimeoutMs) return;
  checkTimeout(work, context.authority.settings.attemptLimitMs);
}

function unknownFunction(context: ApiContext, job: FunctionJob): Problem {
  const known = context.jobs.list();
  const name = didYouMean(
    job.name,
    known.map((one) => one.name),
  );
  const meant = known.findLast((one) => one.name === name);
  const fault: FieldFault = {
    field: "job",
    message: "no such job is registered",
    found: showValue(idOf(job)),
    allowed: known.map(idOf).join(", "),
    ...(meant === undefined ? {} : { didYouMean: idOf(meant) }),
  };
  return problemOfFaults("unknown-job", [fault]);
}

/** Workers of ours run what is theirs, tenants' own workers what is remote: in the other's class nobody would come for it. */
function checkClass({ job, class: class_ }: Work): void {
  if (class_ !== "remote" || job.kind === "remote") return;
  throw fieldProblem({
    field: "class",
    message: `is for jobs of kind remote, and this one's kind is ${job.kind}`,
    found: showValue(class_),
    allowed: OWN_CLASSES.join(", "),
  });
}

/** What stood there before stands still: a worker is asked again before it is run. */
function checkContainer({ containers }: ApiContext, job: Job, before: Job | undefined): void {
  if (job.kind !== "container" || JSON.stringify(job) === JSON.stringify(before)) return;
  if (containers === undefined) {
    throw fieldProblem({
      field: "job.kind",
      message: "cannot be run by this installation: the operator has configured no container engine",
      found: showValue(job.kind),
      allowed: JOB_KINDS.filter((kind) => kind !== job.kind).join(", "),
    });
  }
  const fault = judgeContainer(job, containers);
  if (fault === undefined) return;
  const { field, message, found, allowed } = fault;
  const code = fault.code === "image-not-allowed" ? "image-not-allowed" : "invalid-request";
  throw problemOfFaults(code, [{ field, message, found: showValue(found), allowed }]);
}

function checkTimeout(work: Work, limitMs: Readonly<Record<ResourceClass, number>>): void {
  const { attemptTimeoutMs, class: class_ } = work;
  if (attemptTimeoutMs <= limitMs[class_]) return;
  const others = class_ === "remote" ? [] : OWN_CLASSES.filter((one) => limitMs[one] >= attemptTimeoutMs);
  throw fieldProblem({
    field: "attemptTimeoutMs",
    message: `is longer than an attempt of class ${class_} may take`,
    found: showValue(attemptTimeoutMs),
    allowed: `at most ${limitMs[class_]}${others.length === 0 ? "" : `, or class ${others.join(" or ")}`}`,
  });
}

/** What nobody could send is refused, rather than kept waiting for ever. */
function checkEffects(context: ApiContext, effects: readonly Effect[], before: readonly Effect[]): void {
  const kinds = new Set<string>([...context.effectKinds, ...before.map((effect) => effect.kind)]);
  const i = effects.findIndex((effect) => !kinds.has(effect.kind));
  if (i === -1) return;
  throw fieldProblem({
    field: `effects[${i}].kind`,
    message: "cannot be sent by this installation: the operator has configured no mail server",
    found: showValue(effects[i]!.kind),
    allowed: context.effectKinds.join(", "),
  });
}

const idOf = (job: { name: string; version: number }) => `${job.name}@${job.version}`;

/** A rule that has the right shape and still cannot be: an unknown zone, a date that never comes. */
export function ruleProblem(fault: RuleFault, rule: Rule, zones: ZoneSource): Problem {
  const faults = [fault];
  if (rule.kind === "cron" && fault.field === "zone") {
    // The zone is looked up first, and hides what may be wrong with the expression.
    const inUtc = compileRule({ ...rule, zone: "UTC" }, zones);
    if (!inUtc.ok) faults.push(inUtc.fault);
  }
  return problemOfFaults("invalid-rule", faults.map(ofRule));
}

function ofRule({ field, message, found, allowed, suggestion }: RuleFault): FieldFault {
  return {
    field: field === "rule" || field === "endAt" || field === "startAt" ? field : `rule.${field}`,
    // Whole sentences there, a part of one here.
    message: message.replace(/\.$/, "").replace(/^[A-Z](?![A-Z])/, (first) => first.toLowerCase()),
    found: showValue(found),
    allowed,
    ...(suggestion === undefined ? {} : { didYouMean: suggestion }),
  };
}

/** Refuses a zone that the tz database does not have, in the words of rules. */
export function checkZone(zone: string, zones: ZoneSource): void {
  const compiled = compileRule({ kind: "cron", expression: "@daily", zone }, zones);
  if (!compiled.ok) throw fieldProblem({ ...ofRule(compiled.fault), field: "zone" });
}

/**
 * Refuses bounds that no schedule reaches, but for an end that is meant as none (9999-12-31, say); one that stood in the
 * definition before is no reason to refuse another change.
 */
export function checkBounds(definition: Pick<Definition, "startAt" | "endAt">, before?: Definition): void {
  for (const field of ["startAt", "endAt"] as const) {
    const text = definition[field];
    if (text === undefined || text === before?.[field]) continue;
    const at = Date.parse(text);
    const fault = field === "endAt" && at > LAST_NOMINAL ? undefined : outOfReach(field, text, at);
    if (fault !== undefined) throw fieldProblem(ofRule(fault));
  }
}

/** Fields that are fine one by one and make no sense together. */
export function checkWindow(definition: Pick<Definition, "startAt" | "endAt">): void {
  const { startAt, endAt } = definition;
  if (startAt === undefined || endAt === undefined || Date.parse(startAt) < Date.parse(endAt)) return;
  throw fieldProblem({
    field: "endAt",
    message: "is not after startAt",
    found: endAt,
    allowed: `later than ${startAt}`,
  });
}

import { jobLabelOf } from "../domain/jobs/job.ts";
import type { IssueCallback } from "../handlers/callbacks.ts";
import type { JobContext } from "../handlers/context.ts";
import { executeHandler } from "../handlers/execute.ts";
import type { JobKinds } from "../handlers/kinds.ts";
import type { HandlerOutcome } from "../handlers/outcome.ts";
import type { JobRegistry } from "../handlers/registry.ts";
import type { RunReader } from "../handlers/run-reader.ts";
import { messageOf } from "../kernel/errors.ts";
import { showId } from "../kernel/ids.ts";
import { keptLog, type Log, scrubbedLog } from "../kernel/log.ts";
import { storableJson } from "../kernel/storable.ts";
import type { HeldAttempt, StopReason } from "./held.ts";
import { type AttemptLog, NOTHING_KEPT } from "./logs/attempt-log.ts";
import type { LogKeeper } from "./logs/log-keeper.ts";
import { readableLine } from "./logs/log-line.ts";
import { mayHoldSecrets, openPayload } from "./open-payload.ts";
import { type Outputs, type OutputTools, stageOutput, whileLapsed } from "./outputs.ts";
import type { Reports } from "./reports.ts";
import { outputWithout, type SecretsInUse, scrubbed, scrubLine } from "./secrets-in-use.ts";

export type AttemptTools = OutputTools & {
  /** Knows which inputs of functions hold secrets. */
  registry: JobRegistry;
  kinds: JobKinds;
  reader: RunReader;
  issueCallback: IssueCallback;
  reports: Reports;
  logs: Pick<LogKeeper, "open">;
  /** Remembers what was opened, for what is said where no attempt is known. */
  secrets: SecretsInUse;
  /** Hears how long each handler took (ms), its report not counted: what decides how many runs a hint may name. */
  observe(class_: string, durationMs: number): void;
};

/**
 * One attempt, from its grant to its report: run the handler, then say how it ended. Never rejects: an attempt that
 * cannot be reported is ended by its lease.
 */
export async function runAttempt(tools: AttemptTools, attempt: HeldAttempt): Promise<void> {
  const { grant } = attempt;
  const { clock, metrics } = tools.authority;
  const startedMs = clock.monotonic();
  const staged: Outputs = new Map();
  const outcome = await work(tools, attempt, staged);
  attempt.log?.end();
  // A job may leave something behind that speaks later: a log begun by that would never end.
  attempt.log ??= NOTHING_KEPT;
  const seconds = (clock.monotonic() - startedMs) / 1000;
  tools.observe(grant.class, seconds * 1000);
  metrics.duration.observe({ class: grant.class, job: jobLabelOf(grant.job), outcome: outcome.kind }, seconds);
  try {
    await report(tools, attempt, outcome, staged);
  } catch (error) {
    logOf(tools, attempt).error(
      { reason: messageOf(error) },
      "an attempt could not be reported; its lease will end it",
    );
  }
}

async function work(tools: AttemptTools, attempt: HeldAttempt, staged: Outputs): Promise<HandlerOutcome> {
  const { grant } = attempt;
  const { registry, kinds } = tools;
  let { payload } = grant;
  if (mayHoldSecrets(registry, grant)) {
    const opened = await openPayload(tools.authority.vault, registry, grant);
    if (!opened.ok) return opened.failure;
    payload = opened.payload;
    attempt.secrets = opened.secrets;
    tools.secrets.add(opened.secrets);
  }
  return executeHandler(kinds, grant.job, contextOf(tools, attempt, staged), payload, attempt.secrets);
}

async function report(
  tools: AttemptTools,
  attempt: HeldAttempt,
  outcome: HandlerOutcome,
  staged: Outputs,
): Promise<void> {
  const { grant } = attempt;
  if (outcome.kind === "succeeded") return complete(tools, attempt, outcome, staged);
  if (outcome.kind === "detached") return detach(tools, attempt, outcome);
  const reason = attempt.stop.signal.aborted ? (attempt.stop.signal.reason as StopReason) : undefined;
  // Somebody else has the run: whatever this attempt says would be refused.
  if (reason === "stale-fence") return;
  if (reason === "shutdown") {
    await tools.reports.release(grant);
    return;
  }
  const { kind: _, ...failure } = reason === "deadline" ? { ...outcome, ...TIMED_OUT } : outcome;
  const ended = await tools.reports.fail({ runId: grant.runId, fence: grant.fence, failure });
  const level = ended.kind === "failed" ? "warn" : "info";
  logOf(tools, attempt)[level](
    { outcome: ended.kind, code: failure.code, reason: failure.message },
    "an attempt failed",
  );
}

const TIMED_OUT = { transient: true, code: "attempt-timeout", message: "the attempt ran past its deadline" };

/** The work goes on without this process; whoever knows run and fence says how it ended. */
async function detach(
  tools: AttemptTools,
  attempt: HeldAttempt,
  { callbackWithinMs }: Extract<HandlerOutcome, { kind: "detached" }>,
): Promise<void> {
  const { runId, fence, worker } = attempt.grant;
  const answer = await tools.reports.detach({ runId, fence, worker, callbackWithinMs });
  // Ended meanwhile is no fault: the callback may have been faster.
  logOf(tools, attempt).info({ answer: answer.kind }, "an attempt was detached from its worker");
  if (answer.kind === "deadline") await tools.reports.fail({ runId, fence, failure: TIMED_OUT });
}

async function complete(
  tools: AttemptTools,
  attempt: HeldAttempt,
  outcome: Extract<HandlerOutcome, { kind: "succeeded" }>,
  staged: Outputs,
): Promise<void> {
  const { grant } = attempt;
  const output = outcome.output === undefined ? null : staged.get(outcome.output.uri);
  if (output === undefined) {
    const message = "the job's output is none that it staged in this attempt with ctx.output";
    const failure = { transient: false, code: "output-not-staged", message };
    await tools.reports.fail({ runId: grant.runId, fence: grant.fence, failure });
    return;
  }
  const answer = await whileLapsed(tools, attempt, () =>
    tools.reports.complete({ runId: grant.runId, fence: grant.fence, output }),
  );
  if (answer.kind === "accepted" || answer.kind === "already-accepted") return;
  logOf(tools, attempt).warn({ answer: answer.kind }, "a finished attempt was not accepted");
  if (answer.kind === "object-unusable") {
    const failure = {
      transient: true,
      code: "object-unusable",
      message: `the staged output is unusable: ${answer.found}`,
    };
    await tools.reports.fail({ runId: grant.runId, fence: grant.fence, failure });
  }
}

function logOf(tools: AttemptTools, attempt: HeldAttempt): Log {
  const { secrets } = attempt;
  const log = childOf(tools, attempt);
  return secrets.count === 0 ? log : scrubbedLog(log, (line) => scrubLine(line, secrets));
}

/** What the job says of itself: it is kept with the attempt as well. */
function jobLogOf(tools: AttemptTools, attempt: HeldAttempt): Log {
  const { secrets } = attempt;
  const scrub = secrets.count === 0 ? (line: string) => line : (line: string) => scrubLine(line, secrets);
  return keptLog(childOf(tools, attempt), scrub, (line) => keptOf(tools, attempt).line(readableLine(line)));
}

function childOf(tools: AttemptTools, { grant }: HeldAttempt): Log {
  const { runId, attempt, fence } = grant;
  return tools.authority.log.child({ run: showId("run", runId), attempt, fence: String(fence) });
}

/** Most attempts say nothing: what is kept of one is begun with its first word. */
function keptOf(tools: AttemptTools, attempt: HeldAttempt): AttemptLog {
  const { runId, attempt: n, fence } = attempt.grant;
  attempt.log ??= tools.logs.open({ runId, attempt: n, fence, secrets: () => attempt.secrets });
  return attempt.log;
}

function contextOf(tools: AttemptTools, attempt: HeldAttempt, staged: Outputs): JobContext {
  const { grant } = attempt;
  let log: Log | undefined;
  const context: JobContext = {
    run: {
      id: showId("run", grant.runId),
      scheduleId: grant.scheduleId === null ? null : showId("sch", grant.scheduleId),
      tenantId: grant.tenantId,
      scheduledAt: grant.scheduledAt,
      dueAt: grant.dueAt,
      attempt: grant.attempt,
      fence: grant.fence,
    },
    signal: attempt.stop.signal,
    deadlineAt: grant.deadlineAt,
    // A child logger costs as much as a small job, so it is made when it is asked for.
    get log() {
      log ??= jobLogOf(tools, attempt);
      return log;
    },
    capture: (chunk) => keptOf(tools, attempt).capture(chunk),
    progress(value) {
      const text = storableJson(scrubbed(value, attempt.secrets));
      if (text === undefined) context.log.warn("progress was left out: it is no JSON, or longer than 4,000 characters");
      else attempt.progress = text;
    },
    callback: (endsAt) => tools.issueCallback(context.run, endsAt),
    read: tools.reader,
    output: (name, bytes, mediaType) =>
      stageOutput(tools, attempt, staged, outputWithout(attempt.secrets, { name, bytes, mediaType })),
  };
  return context;
}

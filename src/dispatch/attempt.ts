import type { Authority } from "../authority/authority.ts";
import { grantUpload } from "../authority/objects/grant-upload.ts";
import { stageObject } from "../authority/objects/stage-object.ts";
import type { JobContext, StagedOutput } from "../handlers/context.ts";
import { executeHandler } from "../handlers/execute.ts";
import { type HandlerFailure, type HandlerOutcome, transientFailure } from "../handlers/outcome.ts";
import type { JobRegistry } from "../handlers/registry.ts";
import type { RunReader } from "../handlers/run-reader.ts";
import { messageOf } from "../kernel/errors.ts";
import { showId, type Uuid } from "../kernel/ids.ts";
import { storableJson } from "../kernel/storable.ts";
import { createObjectKey } from "../objects/key.ts";
import type { ObjectStore } from "../objects/port.ts";
import type { Heartbeats } from "./heartbeats.ts";
import type { HeldAttempt, StopReason } from "./held.ts";
import type { Reports } from "./reports.ts";

export type AttemptTools = {
  authority: Authority;
  registry: JobRegistry;
  objects: ObjectStore;
  reader: RunReader;
  reports: Reports;
  heartbeats: Pick<Heartbeats, "revive">;
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
  const staged = new Map<string, Uuid>();
  const outcome = await executeHandler(tools.registry, grant.job, contextOf(tools, attempt, staged), grant.payload);
  attempt.settled = true;
  const seconds = (clock.monotonic() - startedMs) / 1000;
  tools.observe(grant.class, seconds * 1000);
  metrics.duration.observe(
    { class: grant.class, job: `${grant.job.name}@${grant.job.version}`, outcome: outcome.kind },
    seconds,
  );
  try {
    await report(tools, attempt, outcome, staged);
  } catch (error) {
    logOf(tools, attempt).error(
      { reason: messageOf(error) },
      "an attempt could not be reported; its lease will end it",
    );
  }
}

async function report(
  tools: AttemptTools,
  attempt: HeldAttempt,
  outcome: HandlerOutcome,
  staged: ReadonlyMap<string, Uuid>,
): Promise<void> {
  const { grant } = attempt;
  if (outcome.kind === "succeeded") return complete(tools, attempt, outcome, staged);
  const reason = attempt.stop.signal.aborted ? (attempt.stop.signal.reason as StopReason) : undefined;
  // Somebody else has the run: whatever this attempt says would be refused.
  if (reason === "stale-fence") return;
  if (reason === "shutdown") {
    await tools.reports.release({ runId: grant.runId, fence: grant.fence });
    return;
  }
  const { kind: _, ...failure } = reason === "deadline" ? timedOut(outcome) : outcome;
  const ended = await tools.reports.fail({ runId: grant.runId, fence: grant.fence, failure });
  const level = ended.kind === "failed" ? "warn" : "info";
  logOf(tools, attempt)[level](
    { outcome: ended.kind, code: failure.code, reason: failure.message },
    "an attempt failed",
  );
}

function timedOut(outcome: HandlerFailure): HandlerFailure {
  return { ...outcome, transient: true, code: "attempt-timeout", message: "the attempt ran past its deadline" };
}

async function complete(
  tools: AttemptTools,
  attempt: HeldAttempt,
  outcome: Extract<HandlerOutcome, { kind: "succeeded" }>,
  staged: ReadonlyMap<string, Uuid>,
): Promise<void> {
  const { grant } = attempt;
  const output =
    outcome.output === undefined ? null : { objectId: staged.get(outcome.output.uri)!, sha256: outcome.output.sha256 };
  let answer = await tools.reports.complete({ runId: grant.runId, fence: grant.fence, output });
  if (answer.kind === "lease-lapsed" && (await tools.heartbeats.revive(attempt))) {
    // Nobody took over meanwhile: the work is as good as it was.
    answer = await tools.reports.complete({ runId: grant.runId, fence: grant.fence, output });
  }
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

function logOf(tools: AttemptTools, { grant }: HeldAttempt) {
  return tools.authority.log.child({
    run: showId("run", grant.runId),
    attempt: grant.attempt,
    fence: String(grant.fence),
  });
}

function contextOf(tools: AttemptTools, attempt: HeldAttempt, staged: Map<string, Uuid>): JobContext {
  const { grant } = attempt;
  const { authority, objects } = tools;
  return {
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
      return logOf(tools, attempt);
    },
    progress(value) {
      attempt.progress = storableJson(value) ?? attempt.progress;
    },
    read: tools.reader,
    async output(name, bytes, mediaType): Promise<StagedOutput> {
      const key = createObjectKey({ runId: grant.runId, attempt: grant.attempt, fence: grant.fence, name });
      const granted = await grantUpload(authority, { runId: grant.runId, fence: grant.fence, name, key, mediaType });
      if (granted.kind !== "granted") throw transientFailure(granted.kind, "the attempt may not upload any more");
      const put = await objects.put(key, bytes, { mediaType });
      if (put.kind === "exists") throw transientFailure("object-exists", `an output named ${name} was staged before`);
      const { uri, version, sha256, size } = put.object;
      const answer = await stageObject(authority, { objectId: granted.objectId, uri, version, sha256, size });
      if (answer.kind !== "staged")
        throw transientFailure("object-unusable", `the upload was not accepted: ${answer.found}`);
      staged.set(uri, granted.objectId);
      return { ...put.object, name, mediaType };
    },
  };
}

import { type Exit, judgeExit } from "../../domain/containers/exit.ts";
import { containerNameOf } from "../../domain/containers/identity.ts";
import { parseImage, showImage } from "../../domain/containers/image.ts";
import { type ContainerRules, judgeContainer } from "../../domain/containers/rules.ts";
import type { ContainerJob } from "../../domain/jobs/container.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { JobContext, JobResult } from "../context.ts";
import type { JobKindRunner } from "../kinds.ts";
import { JobFailure, permanentFailure, transientFailure } from "../outcome.ts";
import type { ContainerEngine, ContainerSpec, FoundContainer } from "./engine.ts";
import { environmentOf } from "./environment.ts";
import { follow, onlyStdout } from "./follow.ts";
import { type LogReader, readLog } from "./log-reader.ts";

export type ContainerSettings = {
  engine: ContainerEngine;
  rules: ContainerRules;
  /** Whose containers these are: no other installation touches them, and ours touches no others. */
  installation: string;
  clock: Clock;
  /** The most a result may have (bytes). */
  mostResultBytes: number;
  /** How long a container whose worker has ended may wait for the next one (ms); 0: it ends with its worker. */
  adoptWithinMs: number;
};

/** Somebody may have our run already: there is a moment for a clean end, but not the job's own. */
const SHORT_GRACE_MS = 2_000;
const TRIES_FOR_NAME = 5;
const SHOWN_OF_TAIL = 500;

/**
 * Runs one attempt as one container, from making room for it to clearing it away. When the worker is asked to end, the
 * container goes on: the attempt is detached, and the next worker that sees the container adopts it. In all other cases
 * the container ends with the attempt. Why so: docs/decisions/0033-containers-and-fences.md.
 */
export function runContainers(settings: ContainerSettings): JobKindRunner<"container"> {
  return async (ctx, job, payload, secrets) => {
    const { engine, rules } = settings;
    const fault = judgeContainer(job, rules);
    if (fault !== undefined) {
      const { code, field, message, found, allowed } = fault;
      throw permanentFailure(code, `${field} ${message}: found ${found}; allowed: ${allowed}`);
    }
    const spec: ContainerSpec = { ...specOf(settings, ctx, job), ...environmentOf(ctx, job, payload) };
    const id = await begin(engine, spec, ctx);
    const mostBytes = job.result.from === "stdout" ? stdoutLimitOf(settings) : Number.POSITIVE_INFINITY;
    const log = readLog(engine, id, { clock: settings.clock, mostBytes, take: ctx.capture });
    let goesOn = false;
    let hasEnded = false;
    try {
      const exit = await follow(engine, id, { clock: settings.clock, signal: ctx.signal, log, mostBytes });
      hasEnded = true;
      await log.finish();
      return await resultOf(settings, ctx, job, { id, exit, log, secrets });
    } catch (error) {
      if (settings.adoptWithinMs === 0 || !isShutdown(ctx.signal, error)) throw error;
      goesOn = true;
      return { detached: { callbackWithinMs: settings.adoptWithinMs } };
    } finally {
      if (!goesOn) await end(engine, ctx, { id, log, graceMs: hasEnded ? undefined : graceMsOf(ctx.signal, job) });
      log.stop();
    }
  };
}

function specOf({ installation }: ContainerSettings, ctx: JobContext, job: ContainerJob) {
  const { id: run, attempt, fence } = ctx.run;
  return {
    name: containerNameOf(installation, run),
    identity: { installation, run, attempt, fence },
    image: showImage(parseImage(job.image)!),
    deadlineAt: ctx.deadlineAt,
    job,
  };
}

const stdoutLimitOf = ({ engine, mostResultBytes }: Pick<ContainerSettings, "engine" | "mostResultBytes">) =>
  Math.min(mostResultBytes, engine.mostStdoutBytes);

/** A finished result that could not be stored any more is better taken by who adopts the attempt than made anew. */
function isShutdown(signal: AbortSignal, error: unknown): boolean {
  return signal.reason === "shutdown" && !(error instanceof JobFailure && !error.transient);
}

/**
 * The container of this attempt, started. What the run has left on this engine from attempts before goes first: it has a
 * lower fence, so it is over. One of our own fence is this attempt's: its worker has let go of it.
 */
async function begin(engine: ContainerEngine, spec: ContainerSpec, { signal, log }: JobContext): Promise<string> {
  for (let tries = 1; tries <= TRIES_FOR_NAME; tries++) {
    signal.throwIfAborted();
    const there = await engine.find(spec.name);
    if (there !== undefined && isOurs(there, spec) && there.phase !== "created") {
      log.info("another worker has begun this attempt; what its container says follows from the beginning");
      return there.id;
    }
    if (there !== undefined) await clearAway(engine, there, spec);
    signal.throwIfAborted();
    const started = await engine.start(spec, signal);
    if (started.kind === "started") return started.id;
  }
  throw transientFailure("container-name-taken", `another container keeps taking the name ${spec.name}`);
}

const isOurs = (there: FoundContainer, { identity }: ContainerSpec) => there.identity.fence === identity.fence;

async function clearAway(engine: ContainerEngine, there: FoundContainer, { identity, job, name }: ContainerSpec) {
  if (there.identity.run !== identity.run || there.identity.fence > identity.fence) {
    throw transientFailure("container-name-taken", `the container ${name} belongs to a newer attempt`);
  }
  if (there.phase === "running") await engine.stop(there.id, job.stopGraceMs);
  await engine.remove(there.id);
}

async function resultOf(
  { engine, mostResultBytes }: ContainerSettings,
  ctx: JobContext,
  job: ContainerJob,
  { id, exit, log, secrets }: { id: string; exit: Exit; log: LogReader; secrets: KnownSecrets },
): Promise<JobResult> {
  const verdict = judgeExit(exit, job);
  if (verdict.kind === "failed") {
    const { transient, code, message } = verdict;
    throw new JobFailure({ transient, code, message: `${message}${lastWordsOf(secrets.scrub(log.tail()))}` });
  }
  const { result } = job;
  if (result.from === "none") return;
  const { signal } = ctx;
  const bytes =
    result.from === "stdout"
      ? onlyStdout(engine.logs(id, { follow: false, signal }), stdoutLimitOf({ engine, mostResultBytes }), log.ofStdout)
      : engine.file(id, result.path, mostResultBytes, signal);
  const name = result.from === "stdout" ? "stdout" : nameOf(result.path);
  return { output: await ctx.output(name, bytes, result.mediaType) };
}

/** Objects have plainer names than files. */
function nameOf(path: string): string {
  const name = path.slice(path.lastIndexOf("/") + 1).replace(/[^A-Za-z0-9._-]/g, "_");
  return name.replace(/^[._-]+/, "").slice(0, 100) || "result";
}

/** Of a text that has no secrets any more: it is cut. */
function lastWordsOf(scrubbed: string): string {
  const text = scrubbed.trimEnd().slice(-SHOWN_OF_TAIL);
  return text === "" ? "" : `. It said last: ${text}`;
}

/**
 * The container must not go on beside a newer attempt: what has lost its lease gets less grace, and what has lost its fence
 * none. A worker that is to end does not wait for long either.
 */
function graceMsOf({ aborted, reason }: AbortSignal, { stopGraceMs }: ContainerJob): number {
  if (!aborted || reason === "stale-fence") return 0;
  return reason === "lease-doubtful" || reason === "shutdown" ? Math.min(stopGraceMs, SHORT_GRACE_MS) : stopGraceMs;
}

async function end(
  engine: ContainerEngine,
  ctx: JobContext,
  { id, log, graceMs }: { id: string; log: LogReader; graceMs: number | undefined },
): Promise<void> {
  try {
    if (graceMs !== undefined) await engine.stop(id, graceMs);
    // What it has to say to its end is why one gives it a grace.
    if (graceMs !== undefined && graceMs > 0) await log.finish();
    await engine.remove(id);
  } catch (error) {
    ctx.log.warn({ reason: messageOf(error) }, "a container could not be removed; the cleanup will find it");
  }
}

import type { Fence } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { readStandings } from "../../store/reads/workers/standings.ts";
import type { ApiContext, Caller } from "../context.ts";
import { fieldProblem, Problem } from "../problems/problem.ts";
import { getRunId, noSuchRun } from "../resolve.ts";

/** What a body says of whose attempt it speaks. */
export type Spoken = {
  runId?: string | undefined;
  attempt?: number | undefined;
  fence?: Fence | undefined;
  worker?: string | undefined;
};

/** `worker` undefined: a callback, which speaks of its one attempt whoever holds it. */
export type SpokenAttempt = { runId: Uuid; attempt: number; fence: Fence; worker: string | undefined };

/**
 * The attempt that this caller may speak of. A callback token is good for exactly the attempt it names; a worker's key for
 * those of its tenant's remote runs that the worker holds. Tenant and class of a run never change and a fence is one
 * attempt's for ever, so that this may be read before the verb; whether the fence is the current one is for the verb to say.
 * Throws `not-found`, `not-holder`, `stale-fence`, `forbidden`, `invalid-request`.
 */
export async function attemptOf(
  context: ApiContext,
  caller: Caller,
  spoken: Spoken,
  whose: Whose = "its-own",
): Promise<SpokenAttempt> {
  return caller.credential.kind === "callback"
    ? ofCallback(caller.credential.subject, spoken)
    : ofWorker(context, caller, spoken, whose);
}

/** Which attempts a worker may speak of: those it holds; also one that nobody holds, as it was its own before; any. */
type Whose = "its-own" | "or-detached" | "anybodys";

function ofCallback(subject: { runId: Uuid; attempt: number; fence: Fence }, spoken: Spoken): SpokenAttempt {
  const { runId, attempt, fence } = subject;
  const isIts =
    (spoken.runId === undefined || getRunId(spoken.runId) === runId) &&
    (spoken.attempt === undefined || spoken.attempt === attempt) &&
    (spoken.fence === undefined || spoken.fence === fence);
  if (isIts) return { runId, attempt, fence, worker: undefined };
  throw new Problem("forbidden", "The callback token is of another attempt than the one the body names");
}

async function ofWorker(context: ApiContext, caller: Caller, spoken: Spoken, whose: Whose): Promise<SpokenAttempt> {
  const { runId: ref, attempt, fence, worker } = spoken;
  if (ref === undefined || attempt === undefined || fence === undefined || worker === undefined) {
    const field =
      ref === undefined ? "runId" : attempt === undefined ? "attempt" : fence === undefined ? "fence" : "worker";
    throw fieldProblem({ field, message: "is missing", found: "nothing", allowed: "what the grant says" });
  }
  const runId = getRunId(ref);
  const standing = (await readStandings(context.db, caller.tenantId, [runId])).get(runId);
  if (standing?.class !== "remote") throw noSuchRun(ref);
  if (standing.fence === fence) {
    if (standing.attempt !== attempt) throw staleFence();
    const isIts = standing.worker === worker || (standing.worker === null && whose === "or-detached");
    if (!isIts && whose !== "anybodys") throw notHolder(standing.worker, worker);
  }
  return { runId, attempt, fence, worker };
}

/** Whether the attempt is to stop; undefined: it is not the run's present one any more. Read plainly: the answer may be old a moment later. */
export async function readCancelRequested(
  { db }: ApiContext,
  { tenantId }: Caller,
  { runId, fence }: SpokenAttempt,
): Promise<boolean | undefined> {
  const standing = (await readStandings(db, tenantId, [runId])).get(runId);
  return standing?.fence === fence ? standing.cancelRequested : undefined;
}

export function staleFence(): Problem {
  return new Problem("stale-fence", "Another attempt has taken over, or the run has ended: stop");
}

export function notHolder(holder: string | null, worker: string): Problem {
  if (holder === null) return new Problem("not-holder", "The attempt was detached: it is not this worker's");
  return new Problem("not-holder", `The attempt is held by another worker than ${JSON.stringify(worker)}`);
}

export function leaseLapsed(): Problem {
  return new Problem("lease-lapsed", "The attempt's lease is over, and nobody has taken over yet");
}

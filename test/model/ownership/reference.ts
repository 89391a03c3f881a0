import { end, isOpen } from "./births.ts";
import { EffectReference } from "./effect-rules.ts";
import type { Grant, Report, Run, StoredObject } from "./terms.ts";

/**
 * What must be true of runs, attempts and results, in so many words: one list of runs, walked from the start by every verb.
 * Slow, plain, and with nothing in common with what it checks. Times are whole µs, so that nothing is ever rounded.
 */

const SECOND = 1_000_000;
const TTL = 60 * SECOND;
const LONGEST_ATTEMPT = 15 * 60 * SECOND;
const EXPIRIES_OF_A_CRASH_LOOP = 5;

export const isNamed = (run: Run) => run.state === "queued" || run.state === "retrying";

export class Reference extends EffectReference {
  readonly grants: Grant[] = [];
  /** How attempts ended that did not end their run with a result, by their fences. */
  readonly #closed = new Map<bigint, "failed" | "expired" | "canceled" | "released">();

  /** Rows of names in the order of the outbox. Answers the runs that start, in order; their fences are still unknown. */
  claim(rows: readonly (readonly Run[])[], slots: number, worker: string): Run[] {
    const late = rows.flat().filter((run) => isNamed(run) && run.attempt === 0 && this.now > startsBy(run));
    this.endAll([...new Set(late)], (run) => end(run, "skipped", "start-deadline"));
    const started: Run[] = [];
    for (const run of rows.flat()) {
      const { tenant } = run.schedule;
      const running = this.runs.filter((one) => one.schedule.tenant === tenant && one.state === "running").length;
      if (!isNamed(run) || run.notBefore > this.now) continue;
      if (running >= (tenant.limit ?? Number.POSITIVE_INFINITY) || started.length >= slots) continue;
      run.state = "running";
      run.attempt += 1;
      run.worker = worker;
      run.leaseUntil = this.now + TTL;
      run.deadlineAt = this.now + LONGEST_ATTEMPT;
      started.push(run);
    }
    return started;
  }

  heartbeat({ run, fence, worker }: Grant): string {
    if (!this.holds(run, fence)) return "stale-fence";
    if (run.worker !== worker) return "not-holder";
    if (run.deadlineAt <= this.now) return "deadline";
    run.leaseUntil = Math.min(this.now + TTL, run.deadlineAt);
    return `renewed${run.cancelRequested ? ", cancel" : ""} ${run.leaseUntil - this.now}`;
  }

  detach({ run, fence, worker }: Grant, callbackWithinMs: number): string {
    if (!this.holds(run, fence)) return "stale-fence";
    if (run.worker !== undefined) {
      if (run.worker !== worker) return "not-holder";
      if (run.deadlineAt <= this.now) return "deadline";
      run.worker = undefined;
      run.leaseUntil = Math.min(run.deadlineAt, this.now + callbackWithinMs * 1000);
    }
    return `detached${run.cancelRequested ? ", cancel" : ""} ${run.leaseUntil}`;
  }

  adopt({ run, fence }: Grant, worker: string): string {
    if (!this.holds(run, fence)) return "stale-fence";
    if (run.worker !== undefined && run.worker !== worker) return "not-detached";
    if (run.leaseUntil <= this.now) return "lease-lapsed";
    run.worker = worker;
    run.leaseUntil = Math.min(this.now + TTL, run.deadlineAt);
    return `adopted${run.cancelRequested ? ", cancel" : ""} ${run.attempt} ${run.deadlineAt - this.now}`;
  }

  complete({ run, fence }: Grant, output: { object: StoredObject; sha256: string } | undefined): string {
    if (run.state === "succeeded" && run.result!.fence === fence)
      return run.result!.sha256 === output?.sha256 ? "already-accepted" : "result-conflict";
    if (!this.holds(run, fence)) return "stale-fence";
    if (run.leaseUntil <= this.now) return "lease-lapsed";
    if (output !== undefined) {
      const { object, sha256 } = output;
      const isItsOwn = object.run === run && object.fence === fence;
      if (!isItsOwn || object.state !== "staged" || object.sha256 !== sha256 || object.grantedUntil <= this.now)
        return "object-unusable";
      this.publish(object);
    }
    this.endAll([run], () => {
      end(run, "succeeded");
      run.result = { fence, sha256: output?.sha256 };
    });
    this.intend(run, output?.object);
    return "accepted";
  }

  fail({ run, fence }: Grant, report: Report): string {
    if (!this.holds(run, fence)) {
      const closed = this.#closed.get(fence);
      return closed === "failed" ? "already-reported" : closed === "canceled" ? "canceled" : "stale-fence";
    }
    this.#failed(run, report, "failed");
    return run.state;
  }

  release({ run, fence, worker }: Grant): string {
    if (!this.holds(run, fence)) {
      const closed = this.#closed.get(fence);
      return closed === "released" || closed === "canceled" ? closed : "stale-fence";
    }
    if (run.worker !== worker) return "not-holder";
    if (run.cancelRequested) {
      this.#acceptCancel(run);
      return "canceled";
    }
    this.#retry(run, this.now, "released");
    run.interruptions += 1;
    run.expiries = 0;
    return "released";
  }

  /** `forgiven`: the authority itself was away, so that nobody could renew anything. */
  expire(runs: readonly Run[], forgiven: boolean): number {
    const over = [...new Set(runs)].filter((run) => run.state === "running" && run.leaseUntil < this.now);
    for (const run of over) {
      if (forgiven && !run.cancelRequested && run.deadlineAt > this.now) this.#retry(run, this.now, "expired");
      else this.#failed(run, { transient: true, retryAfterMs: undefined }, "expired");
    }
    return over.length;
  }

  cancel(run: Run): string {
    if (run.state === "running") {
      run.cancelRequested = true;
      return "requested";
    }
    if (!isOpen(run)) return `too-late ${run.state}`;
    this.endAll([run], () => end(run, "canceled"));
    return "accepted";
  }

  #failed(run: Run, report: Report, how: "failed" | "expired"): void {
    if (run.cancelRequested) {
      this.#acceptCancel(run);
      return;
    }
    run.spent += 1;
    const backoff = Math.floor(Math.min(300_000, 1000 * 2 ** (run.spent - 1)) / 2);
    const notBefore = this.now + Math.max(backoff, report.retryAfterMs ?? 0) * 1000;
    // A detached attempt has no worker that it could have killed.
    const killed = how === "expired" && run.worker !== undefined;
    const reason =
      killed && run.expiries + 1 >= EXPIRIES_OF_A_CRASH_LOOP ? "crash-loop" : whyNoRetry(run, report, notBefore);
    if (reason === undefined) {
      this.#retry(run, notBefore, how);
      run.expiries = killed ? run.expiries + 1 : 0;
    } else {
      this.#closed.set(run.fence!, how);
      this.endAll([run], () => end(run, "failed"));
      run.letter = { reason, resolution: undefined };
    }
  }

  #acceptCancel(run: Run): void {
    this.#closed.set(run.fence!, "canceled");
    this.endAll([run], () => end(run, "canceled"));
  }

  #retry(run: Run, notBefore: number, how: "failed" | "expired" | "released"): void {
    this.#closed.set(run.fence!, how);
    Object.assign(run, { state: "retrying", notBefore, fence: undefined, worker: undefined });
  }
}

function whyNoRetry(run: Run, report: Report, notBefore: number): string | undefined {
  if (!report.transient) return "permanent";
  if (run.spent >= run.policy.maxAttempts) return "attempts-exhausted";
  return notBefore - run.budgetFrom > run.policy.maxElapsedMinutes * 60 * SECOND ? "elapsed-exhausted" : undefined;
}

function startsBy(run: Run): number {
  const { startWithinMs } = run.policy;
  return startWithinMs === undefined ? Number.POSITIVE_INFINITY : run.at + startWithinMs * 1000;
}

import type { Beat, LeaseTerms, WorkerCalls, WorkerGrant } from "./calls.ts";
import type { WorkerClock } from "./clock.ts";
import type { StopReason } from "./job.ts";

/** An attempt that this process is at work on. */
export type HeldAttempt = {
  readonly grant: WorkerGrant;
  readonly stop: AbortController;
  /** Monotonic ms until which the lease is trusted, counted from before the call that gave or renewed it. */
  trustedUntilMs: number;
  readonly deadlineMs: number;
  /** Its detaching was asked for: that it is not ours any more is no news then. */
  isLeaving: boolean;
};

export type HeldAttempts = {
  hold(grant: WorkerGrant, sentMs: number): HeldAttempt;
  /** It is somebody else's: no heartbeats, no slot. What its job still does goes on. */
  detach(attempt: HeldAttempt): void;
  /** Nothing of it runs here any more. */
  letGo(attempt: HeldAttempt): void;
  /** Whatever runs here, detached or not. */
  all(): readonly HeldAttempt[];
  /** How many slots are taken. */
  readonly size: number;
  /** Resolves when one has been detached or let go, or when `signal` aborts. */
  change(signal: AbortSignal): Promise<void>;
  /** One heartbeat for one attempt, now. */
  revive(attempt: HeldAttempt): Promise<Beat["outcome"] | undefined>;
  /** Sends heartbeats for all until `until` aborts. */
  beat(until: AbortSignal): Promise<void>;
};

/** Calls name so many attempts at most. */
const MOST_BEATS = 1_000;
/** How often it is looked whether a lease or a deadline is over. */
const WATCH_MS = 250;

export function createHeldAttempts(deps: {
  calls: WorkerCalls;
  clock: WorkerClock;
  worker: string;
  terms(): LeaseTerms;
  log(message: string, fields: Record<string, unknown>): void;
}): HeldAttempts {
  const { calls, clock, worker, log } = deps;
  const held = new Set<HeldAttempt>();
  const detached = new Set<HeldAttempt>();
  let changed = Promise.withResolvers<void>();

  const end = (attempt: HeldAttempt, reason: StopReason) => attempt.stop.abort(reason);

  async function say(attempts: readonly HeldAttempt[]): Promise<readonly Beat[]> {
    const { ttlMs, heartbeatMs, marginMs } = deps.terms();
    const sentMs = clock.monotonic();
    const said = attempts.map(({ grant: { runId, attempt, fence } }) => ({ runId, attempt, fence }));
    const answer = await calls.heartbeat({ worker, attempts: said }, Math.max(1_000, heartbeatMs));
    for (const [i, attempt] of attempts.entries()) hear(attempt, answer.attempts[i], sentMs + ttlMs - marginMs);
    return answer.attempts;
  }

  /** A lease that its deadline cuts short is for the deadline to end. */
  function hear(attempt: HeldAttempt, beat: Beat | undefined, trustedUntilMs: number): void {
    if (!held.has(attempt)) return;
    if (beat?.outcome === "renewed") {
      attempt.trustedUntilMs = trustedUntilMs;
      if (beat.cancelRequested) end(attempt, "canceled");
    } else if (beat?.outcome === "deadline") end(attempt, "deadline");
    else if (beat?.outcome === "stale-fence") end(attempt, "stale-fence");
    else if (beat?.outcome === "not-holder" && !attempt.isLeaving) end(attempt, "stale-fence");
  }

  function tell(): void {
    changed.resolve();
    changed = Promise.withResolvers();
  }

  function watch(): void {
    const nowMs = clock.monotonic();
    for (const attempt of held) {
      if (nowMs >= attempt.deadlineMs) end(attempt, "deadline");
      else if (nowMs >= attempt.trustedUntilMs) end(attempt, "lease-doubtful");
    }
  }

  return {
    hold(grant, sentMs) {
      const { ttlMs, marginMs } = deps.terms();
      const attempt: HeldAttempt = {
        grant,
        stop: new AbortController(),
        trustedUntilMs: sentMs + ttlMs - marginMs,
        deadlineMs: sentMs + grant.timeoutMs,
        isLeaving: false,
      };
      held.add(attempt);
      return attempt;
    },
    detach(attempt) {
      held.delete(attempt);
      detached.add(attempt);
      tell();
    },
    letGo(attempt) {
      held.delete(attempt);
      detached.delete(attempt);
      tell();
    },
    all: () => [...held, ...detached],
    get size() {
      return held.size;
    },
    async change(signal) {
      if (signal.aborted) return;
      const aborted = Promise.withResolvers<void>();
      const wake = () => aborted.resolve();
      signal.addEventListener("abort", wake);
      await Promise.race([changed.promise, aborted.promise]);
      signal.removeEventListener("abort", wake);
    },
    async revive(attempt) {
      return (await say([attempt]))[0]?.outcome;
    },
    async beat(until) {
      let dueMs = clock.monotonic();
      let saying: Promise<void> | undefined;
      while (!until.aborted) {
        await clock.sleep(Math.min(WATCH_MS, deps.terms().heartbeatMs), until);
        watch();
        const nowMs = clock.monotonic();
        if (held.size === 0) dueMs = nowMs + deps.terms().heartbeatMs / 2;
        if (held.size === 0 || nowMs < dueMs || saying !== undefined) continue;
        dueMs = nowMs + deps.terms().heartbeatMs;
        const all = [...held];
        const groups = Array.from({ length: Math.ceil(all.length / MOST_BEATS) }, (_, i) =>
          all.slice(i * MOST_BEATS, (i + 1) * MOST_BEATS),
        );
        // Beside the watch: an answer that does not come must not keep leases trusted.
        saying = Promise.all(groups.map(say))
          .then(() => undefined)
          .catch((error: unknown) => log("a heartbeat got no answer", { reason: String(error) }))
          .finally(() => {
            saying = undefined;
          });
      }
      await saying;
    },
  };
}

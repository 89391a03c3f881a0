import type { Grant } from "../authority/attempts/grant.ts";
import { type Beat, heartbeat } from "../authority/attempts/heartbeat.ts";
import type { Authority } from "../authority/authority.ts";
import { trustedUntil } from "../domain/lease.ts";
import type { Timer } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import { showId } from "../kernel/ids.ts";
import type { Service } from "../kernel/service.ts";
import type { HeldAttempt, HeldAttempts, StopReason } from "./held.ts";
import { insist } from "./insist.ts";

const BATCH = 500;
/** How often deadlines and trust are looked at; heartbeats themselves go out once per heartbeat term. */
const LOOK_EVERY_MS = 250;

export type Heartbeats = Service & {
  /**
   * Renews one lease now (of an attempt whose work is done but whose trust has run out); false: somebody else has taken
   * over. Throws when there is no answer by the attempt's deadline.
   */
  revive(attempt: HeldAttempt): Promise<boolean>;
};

const beatOf = ({ runId, fence, worker }: Grant, progress?: string): Beat => ({ runId, fence, worker, progress });

/**
 * One timer for every lease of the process. It tells attempts to stop when their time is up, when they are canceled,
 * when their fence is stale, or when their lease cannot be trusted any more.
 */
export function createHeartbeats(options: {
  authority: Authority;
  held: HeldAttempts;
  /** Nobody waits for answers any more: the process is ending. */
  ending: AbortSignal;
}): Heartbeats {
  const { authority, held, ending } = options;
  const { clock, log } = authority;
  const { lease } = authority.settings;
  let timer: Timer | undefined;
  let stopped = false;
  let beating: Promise<void> | undefined;

  function tell(attempt: HeldAttempt, reason: StopReason): void {
    if (attempt.stop.signal.aborted) return;
    const { runId, attempt: n, fence } = attempt.grant;
    log.info({ run: showId("run", runId), attempt: n, fence: String(fence), reason }, "an attempt is told to stop");
    attempt.stop.abort(reason);
  }

  function look(): void {
    // First: whatever goes wrong below, there is a next look.
    if (!stopped) timer = clock.after(LOOK_EVERY_MS, look);
    const nowMs = clock.monotonic();
    for (const attempt of held.all()) {
      if (nowMs >= attempt.deadlineMs) tell(attempt, "deadline");
      else if (nowMs >= attempt.trustedUntilMs) tell(attempt, "lease-doubtful");
    }
    if (beating === undefined && isAnyDue(nowMs)) {
      beating = beatAll(nowMs).finally(() => {
        beating = undefined;
      });
    }
  }

  function isAnyDue(nowMs: number): boolean {
    for (const attempt of held.all()) if (nowMs - attempt.renewedMs >= lease.heartbeatMs) return true;
    return false;
  }

  /** Beats for every lease that is due or soon will be, together. Most attempts end before they ever need one. */
  async function beatAll(nowMs: number): Promise<void> {
    const attempts = [...held.all()].filter((attempt) => nowMs - attempt.renewedMs >= lease.heartbeatMs * 0.7);
    const busy: HeldAttempt[] = [];
    for (let at = 0; at < attempts.length; at += BATCH) busy.push(...(await beat(attempts.slice(at, at + BATCH))));
    // A row that somebody held for a moment is tried again by itself.
    for (const attempt of busy) await beat([attempt]);
  }

  /** Answers the attempts whose rows were busy. */
  async function beat(attempts: readonly HeldAttempt[]): Promise<HeldAttempt[]> {
    // The authority cannot have counted from earlier than this, whatever the reply takes.
    const sentAtMs = clock.monotonic();
    const beats = attempts.map(({ grant, progress }) => beatOf(grant, progress));
    try {
      const outcomes = await heartbeat(authority, beats);
      return attempts.filter((attempt, i) => {
        const outcome = outcomes[i]!;
        if (outcome.kind === "busy") return true;
        if (outcome.kind === "renewed") {
          attempt.renewedMs = sentAtMs;
          // What was said meanwhile is for the next beat.
          if (attempt.progress === beats[i]!.progress) attempt.progress = undefined;
          attempt.trustedUntilMs = Math.min(trustedUntil(sentAtMs, lease), attempt.deadlineMs);
          if (outcome.cancelRequested) tell(attempt, "canceled");
        } else tell(attempt, outcome.kind === "deadline" ? "deadline" : "stale-fence");
        return false;
      });
    } catch (error) {
      // The next look tries again; the trust window says when it is too late.
      log.warn({ attempts: attempts.length, reason: messageOf(error) }, "heartbeats could not be sent");
      return [];
    }
  }

  return {
    name: "heartbeats",
    async start() {
      timer ??= clock.after(LOOK_EVERY_MS, look);
    },
    async stop() {
      stopped = true;
      timer?.cancel();
      await beating;
    },
    async revive(attempt) {
      const { grant } = attempt;
      const [outcome] = await insist(authority, { ending, untilMs: attempt.deadlineMs }, () =>
        heartbeat(authority, [beatOf(grant)]),
      );
      return outcome!.kind === "renewed" || outcome!.kind === "busy";
    },
  };
}

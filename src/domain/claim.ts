import type { Instant } from "../kernel/clock.ts";
import type { LiveState } from "./states.ts";

/** What a claim sees of a run, read under its lock. */
export type ClaimedRun = {
  state: LiveState;
  notBefore: Instant;
  startDeadlineAt: Instant | null;
  cancelRequestedAt: Instant | null;
  attempt: number;
};

export type ClaimDecision = "claim" | "cancel" | "miss-deadline" | "not-due" | "not-claimable";

/** Decides one run of a hint, before slots and limits are looked at. */
export function decideClaim(run: ClaimedRun, nowAt: Instant): ClaimDecision {
  if (run.state !== "queued" && run.state !== "retrying") return "not-claimable";
  if (run.cancelRequestedAt !== null) return "cancel";
  // The deadline is for the first start: a run that has started once is on time already.
  if (run.attempt === 0 && run.startDeadlineAt !== null && nowAt > run.startDeadlineAt) return "miss-deadline";
  return run.notBefore <= nowAt ? "claim" : "not-due";
}

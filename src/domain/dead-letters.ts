import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { RunState, ScheduleStatus } from "./states.ts";

/** A dead letter stands for a run that was given up, until a person has decided about it. */

export const RESOLUTIONS = ["replayed", "dismissed"] as const;
export type Resolution = (typeof RESOLUTIONS)[number];

export const LETTER_STATES = ["open", ...RESOLUTIONS] as const;
export type LetterState = (typeof LETTER_STATES)[number];

/** Runs a second where the request names no pace. */
export const DEFAULT_REPLAY_PACE = 10;
export const MOST_REPLAY_PACE = 1_000;

/** Somebody who names one run may change their mind about it; who asks for many means those nobody has decided about. */
export const REPLAYABLE_ALONE: readonly LetterState[] = ["open", "dismissed"];
export const REPLAYABLE_TOGETHER: readonly LetterState[] = ["open"];

/** Which dead letters are meant; all fields must fit. */
export type LetterFilter = {
  scheduleId?: Uuid;
  class?: string;
  reason?: string;
  fingerprint?: string;
  /** When the run was given up: from (inclusive) and to (exclusive). */
  fromAt?: Instant;
  toAt?: Instant;
};

/**
 * How a letter stands where the failure of a certain moment is meant (undefined: whichever it is of). A run has one letter:
 * if it is of a later failure, the one that is meant was replayed.
 */
export function standingOf(
  letter: { state: LetterState; created_at: Instant } | undefined,
  failedAt: Instant | undefined,
): LetterState | undefined {
  if (letter === undefined) return undefined;
  return failedAt === undefined || letter.created_at === failedAt ? letter.state : "replayed";
}

/** A run whose replay was asked for, read under its locks. */
export type ReplayedRun = {
  scheduledAt: Instant;
  state: RunState | "open";
  letter: LetterState | undefined;
  /** Undefined: an ad hoc run. */
  scheduleStatus: ScheduleStatus | undefined;
};

export type ReplayRefusal = "not-found" | "history-removed" | "schedule-deleted" | "not-failed";

/** Undefined: it may be replayed. A paused or finished schedule is no obstacle: a person asked for this one run. */
export function refusalOfReplay(
  run: ReplayedRun,
  replayable: readonly LetterState[],
  floorAt: Instant,
): ReplayRefusal | undefined {
  if (run.letter === undefined) return "not-found";
  if (run.scheduledAt < floorAt) return "history-removed";
  if (run.state !== "failed" || !replayable.includes(run.letter)) return "not-failed";
  // Whoever deleted it was told that it makes no more runs.
  if (run.scheduleStatus === "deleted") return "schedule-deleted";
  return undefined;
}

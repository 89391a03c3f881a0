/** The life cycle of a run, as people see it. SQL CHECKs, docs and console are tested against this table. */
export type RunState = "queued" | "blocked" | "running" | "retrying" | "succeeded" | "failed" | "canceled" | "skipped";

export const EDGES: Readonly<Record<RunState, readonly RunState[]>> = {
  queued: ["running", "skipped", "canceled"],
  blocked: ["queued", "skipped", "canceled"],
  running: ["succeeded", "retrying", "failed", "canceled"],
  retrying: ["running", "failed", "skipped", "canceled"],
  succeeded: [],
  canceled: [],
  failed: ["queued", "blocked"], // operator replay only; identity kept
  skipped: ["queued", "blocked"], // backfill only; identity kept
};

/** Where an open run stands: kept in live_run. */
export const LIVE_STATES = ["queued", "blocked", "running", "retrying"] as const;
export type LiveState = (typeof LIVE_STATES)[number];

/** How a run ended: kept in run. */
export const ENDED_STATES = ["succeeded", "failed", "canceled", "skipped"] as const;
export type EndedState = (typeof ENDED_STATES)[number];

export const TRIGGERS = ["schedule", "manual", "backfill", "catch-up", "api"] as const;
export type Trigger = (typeof TRIGGERS)[number];

export const SKIP_REASONS = [
  "misfire",
  "paused",
  "calendar",
  "calendar-merged",
  "gap",
  "overlap",
  "start-deadline",
  "quota",
  "suspended",
  "history-floor",
] as const;
export type SkipReason = (typeof SKIP_REASONS)[number];

/** Why a run could not start at its due instant; the lateness objective is computed over `none`. */
export const HELD_BY = ["none", "overlap", "tenant-limit", "rate", "replay", "pause", "suspended"] as const;
export type HeldBy = (typeof HELD_BY)[number];

export const SCHEDULE_STATUSES = ["active", "paused", "finished", "deleted"] as const;
export type ScheduleStatus = (typeof SCHEDULE_STATUSES)[number];

/** Lanes of the outbox: strict first, then normal, then whatever is late on purpose (catch-up, backfill, replay, retries). */
export const LANES = { strict: 0, normal: 1, late: 2 } as const;
export type Lane = 0 | 1 | 2;

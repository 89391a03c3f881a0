/** Examples of the reference page that are about dead letters; a test sends the bodies and holds the answers against their schemas. */

const FAILED = { code: "warehouse-unreachable", message: "connect ECONNREFUSED 10.0.0.7:5432" } as const;

const LETTER_FILTER = { reason: "attempts-exhausted", fingerprint: "5f0c1d7e2b9a4c36" } as const;
export const LETTERS_BODY = {
  filter: LETTER_FILTER,
  dryRun: true,
  pacePerSecond: 5,
  reason: "The warehouse is back",
} as const;
export const DISMISSAL_BODY = {
  filter: LETTER_FILTER,
  dryRun: true,
  reason: "Superseded by the report of the next day",
} as const;
export const DECISION_BODY = { reason: "The warehouse is back" } as const;

export const LISTED_LETTER = {
  runId: "run_01kct0v2mz8h3bmq5d0v5x2c9s",
  scheduleId: "sch_01kct0v2mz8h3bmq5d0v5x2c9r",
  scheduledAt: "2026-10-01T13:00:00Z",
  class: "short",
  state: "open",
  reason: "attempts-exhausted",
  fingerprint: LETTER_FILTER.fingerprint,
  attempts: 3,
  error: FAILED,
  failedAt: "2026-10-01T13:02:11.5Z",
  resolvedAt: null,
  resolvedBy: null,
  replays: 1,
  job: { kind: "function", name: "report.run-summary", version: 1 },
} as const;

export const LETTER_HISTORY = [
  {
    resolution: "replayed",
    resolvedAt: "2026-10-01T13:01:40Z",
    resolvedBy: "key_01kct0v2mz8h3bmq5d0v5x2c9w",
    resolvedByLabel: "demo",
    reason: "It was a timeout",
    operationId: null,
    failedAt: "2026-10-01T13:01:12Z",
    failure: "attempts-exhausted",
    attempts: 2,
    error: { code: "attempt-timeout", message: "the attempt ran past its deadline" },
  },
] as const;

export const LETTER_GROUP = {
  fingerprint: LETTER_FILTER.fingerprint,
  count: { value: 17, capped: false },
  schedules: 4,
  reason: "attempts-exhausted",
  error: FAILED,
  firstAt: "2026-10-01T12:58:03Z",
  lastAt: LISTED_LETTER.failedAt,
  sampleRunId: LISTED_LETTER.runId,
  job: LISTED_LETTER.job,
} as const;

export const LETTERS_PLAN = {
  letters: { value: 17, capped: false },
  counts: { replayed: 16, "schedule-deleted": 1 },
  sample: [LISTED_LETTER],
  estimatedSeconds: 4,
} as const;

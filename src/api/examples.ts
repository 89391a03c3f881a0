/** What the reference page shows and "Try it out" sends. A test sends every body and holds every answer against its schema. */

const rule = { kind: "cron", expression: "0 9 * * 1-5", zone: "America/New_York" } as const;
const job = { kind: "function", name: "report.run-summary", version: 1 } as const;
const payload = { period: "last-day", zone: "America/New_York" };

export const SCHEDULE_BODY = { name: "Weekday report", labels: { team: "sales" }, rule, job, payload };
export const REPLACEMENT_BODY = {
  expectedRevision: 1,
  ...SCHEDULE_BODY,
  rule: { ...rule, expression: "30 8 * * 1-5" },
};
export const PATCH_BODY = {
  expectedRevision: 1,
  notes: "Asked for by the sales team",
  effects: [
    { name: "email", kind: "email" as const, to: ["sales@example.com"], subject: "Sales of {{run.scheduledAt}}" },
    { name: "crm", kind: "webhook" as const, url: "https://crm.example.com/hooks/reports" },
  ],
};
export const PREVIEW_BODY = { rule, count: 5 };
export const PREVIEW_CHANGE_BODY = { rule: { ...rule, expression: "30 8 * * 1-5" }, count: 5 };
export const RUN_BODY = { job, payload };
export const RUN_NOW_BODY = { payload };
export const NOTE_BODY = { note: "Maintenance" };
export const BACKFILL_BODY = {
  from: "2026-10-01T00:00:00Z",
  to: "2026-10-08T00:00:00Z",
  policy: "missing",
  dryRun: true,
  pacePerSecond: 5,
  reason: "The scheduler was down for a week",
} as const;

export const CALENDAR_BODY = {
  dates: [{ date: "2026-11-27", name: "Day after Thanksgiving" }],
  ranges: [{ from: "2026-12-28", to: "2026-12-31", name: "Closed between the years" }],
  yearly: [{ date: "12-25", name: "Christmas" }],
};

const work = {
  job,
  class: "short",
  priority: "normal",
  retry: { maxAttempts: 3, maxElapsedMs: 86_400_000, baseMs: 1000, capMs: 300_000 },
  attemptTimeoutMs: 900_000,
} as const;

const definition = {
  ...work,
  rule,
  runIfPast: false,
  pauseOnFailure: false,
  overlap: { policy: "forbid" },
  misfire: { policy: "latest", graceMs: 60_000, maxCatchUp: 100 },
  payload,
} as const;

export const SCHEDULE = {
  scheduleId: "sch_01kct0v2mz8h3bmq5d0v5x2c9r",
  revision: 1,
  status: "active",
  key: null,
  name: SCHEDULE_BODY.name,
  labels: SCHEDULE_BODY.labels,
  managedBy: null,
  notes: null,
  ...definition,
  nextRunAt: "2026-10-01T13:00:00Z",
  nextDueAt: "2026-10-01T13:00:00Z",
  nextRun: { at: "2026-10-01T13:00:00Z", local: "2026-10-01T09:00:00-04:00[America/New_York]" },
  fault: null,
  createdAt: "2026-09-30T16:20:00.123456Z",
  updatedAt: "2026-09-30T16:20:00.123456Z",
  source: "authority",
} as const;

export const LISTED_CALENDAR = {
  name: "company-holidays",
  version: 3,
  actor: "key:pk_demo",
  createdAt: "2026-09-30T16:20:00.123Z",
  entries: 3,
} as const;

const { entries: _entries, ...calendarVersion } = LISTED_CALENDAR;
export const CALENDAR = {
  ...calendarVersion,
  ...CALENDAR_BODY,
  weekend: ["saturday", "sunday"] as const,
  source: "authority" as const,
};

export const REVISION = { revision: 1, actor: "key:pk_demo", createdAt: SCHEDULE.createdAt, ...definition } as const;

export const PREVIEW = {
  description: "At 02:30, America/New_York time",
  warnings: [],
  instants: [
    {
      at: "2027-03-14T07:00:00Z",
      local: "2027-03-14T03:00:00-04:00[America/New_York]",
      offset: "-04:00",
      dueAt: "2027-03-14T07:00:00Z",
      label: "02:30 does not exist that day; runs at 03:00, the first instant after the gap",
      labels: [
        { kind: "gap", text: "02:30 does not exist that day; runs at 03:00, the first instant after the gap" } as const,
      ],
    },
  ],
  notes: [],
  feasibility: null,
  tzVersion: "2026f",
};

export const LISTED_RUN = {
  runId: "run_01kct0v2mz8h3bmq5d0v5x2c9s",
  scheduleId: SCHEDULE.scheduleId,
  schedule: { key: SCHEDULE.key, name: SCHEDULE.name },
  state: "succeeded",
  class: "short",
  trigger: "schedule",
  job,
  revision: 1,
  attempt: 1,
  scheduledAt: "2026-10-01T13:00:00Z",
  dueAt: "2026-10-01T13:00:00Z",
  admittedAt: "2026-10-01T13:00:00.012Z",
  startedAt: "2026-10-01T13:00:00.034Z",
  finishedAt: "2026-10-01T13:00:01.5Z",
  skipReason: null,
  heldBy: null,
  cancellationRequested: false,
  error: null,
  result: {
    sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    size: 20_480,
    mediaType: "text/html; charset=utf-8",
  },
  worker: null,
  leaseUntil: null,
  callbackDueAt: null,
} as const;

const RUN_EFFECT = {
  effectId: "eff_01kct0v2mz8h3bmq5d0v5x2c9v",
  name: "email",
  kind: "email",
  state: "pending",
  attempts: 0,
  externalId: null,
  message: null,
  resolution: null,
  nextAttemptAt: "2026-10-01T13:00:01.5Z",
  settledAt: null,
} as const;

export const RUN = { ...LISTED_RUN, payload, effects: [RUN_EFFECT], deadLetter: null, source: "authority" } as const;

export const ATTEMPT = {
  attempt: 1,
  worker: "worker-1",
  startedAt: LISTED_RUN.startedAt,
  endedAt: LISTED_RUN.finishedAt,
  outcome: "succeeded",
  error: null,
  detachedAt: null,
  adoptedBy: null,
  progress: { rows: 12_000 },
  logBytes: 1_482,
} as const;

export const OPERATION = {
  operationId: "op_01kct0v2mz8h3bmq5d0v5x2c9t",
  kind: "backfill",
  scheduleId: SCHEDULE.scheduleId,
  schedule: { key: SCHEDULE.key, name: SCHEDULE.name },
  state: "working",
  arguments: { from: BACKFILL_BODY.from, to: BACKFILL_BODY.to, policy: BACKFILL_BODY.policy },
  done: 3,
  failed: 0,
  total: 5,
  counts: { "skipped-range": 3, "existing:succeeded": 1 },
  pacePerSecond: BACKFILL_BODY.pacePerSecond,
  message: null,
  actor: "key:pk_demo",
  reason: BACKFILL_BODY.reason,
  createdAt: "2026-10-09T08:00:00Z",
  updatedAt: "2026-10-09T08:00:01Z",
  nextStepAt: "2026-10-09T08:00:01.6Z",
  finishedAt: null,
  source: "authority",
} as const;

export const BACKFILL_PLAN = {
  revision: 1,
  instants: { value: 6, capped: false },
  runs: { value: 5, capped: false },
  counts: { "skipped-range": 5, "existing:succeeded": 1 },
  firstAt: "2026-10-01T13:00:00Z",
  lastAt: "2026-10-07T13:00:00Z",
  sample: [{ at: "2026-10-01T13:00:00Z", dueAt: "2026-10-01T13:00:00Z", was: "skipped-range", reason: "misfire" }],
  estimatedSeconds: 1,
} as const;

export const LEDGER = {
  scheduleId: SCHEDULE.scheduleId,
  from: "2026-09-28T00:00:00Z",
  to: "2026-10-02T00:00:00Z",
  complete: true,
  verifiedTo: "2026-10-02T00:00:00Z",
  decidedTo: "2026-10-02T13:00:00Z",
  holes: [],
  counts: {
    ran: { value: 1, capped: false },
    pending: { value: 0, capped: false },
    skipped: { value: 2, capped: false },
  },
  recomputed: "agrees",
  notes: [],
  items: [
    {
      kind: "range",
      at: "2026-09-28T13:00:00Z",
      local: "2026-09-28T09:00:00-04:00[America/New_York]",
      to: { at: "2026-09-29T13:00:00Z", local: "2026-09-29T09:00:00-04:00[America/New_York]" },
      instants: 2,
      backfilled: 0,
      reason: "paused",
      revision: 1,
    },
    {
      kind: "ran",
      at: LISTED_RUN.scheduledAt,
      local: SCHEDULE.nextRun.local,
      runId: LISTED_RUN.runId,
      state: "succeeded",
      outcome: { attempts: 1, startedAt: LISTED_RUN.startedAt, finishedAt: LISTED_RUN.finishedAt, error: null },
      reason: null,
      trigger: "schedule",
      revision: 1,
    },
  ],
  next: null,
  watermark: "2026-10-02T09:15:00Z",
  source: "authority",
} as const;

const COUNTS = {
  started: 60,
  succeeded: 58,
  failed: 1,
  canceled: 0,
  skipped: 0,
  retried: 3,
  heldBack: 2,
  lateness: { counts: [0, 12, 31, 11, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], p50Ms: 20, p99Ms: 250 },
};

export const STATS = {
  from: "2026-10-01T13:00:00Z",
  to: "2026-10-01T14:00:00Z",
  resolution: "hour",
  latenessBoundsMs: [5, 10, 20, 50, 100, 250, 500, 1000, 2000, 3000, 5000, 10_000, 30_000, 60_000, 300_000, 3_600_000],
  items: [{ at: "2026-10-01T13:00:00Z", class: "short", ...COUNTS }],
  total: COUNTS,
  source: "rollups",
  asOf: "2026-10-01T14:20:55.104Z",
} as const;

export const PROBLEM = {
  type: "http://127.0.0.1:8080/docs/errors#invalid-request",
  title: "The request has fields that cannot be accepted",
  status: 400,
  detail: 'class: found "shrot"; is not one of the allowed values; allowed: short, long, memory; did you mean "short"?',
  instance: "/v1/schedules",
  code: "invalid-request",
  retryable: false,
  requestId: "req_01kct0v2mz8h3bmq5d0v5x2c9r",
  errors: [
    {
      field: "class",
      message: "is not one of the allowed values",
      found: '"shrot"',
      allowed: "short, long, memory",
      didYouMean: "short",
    },
  ],
} as const;

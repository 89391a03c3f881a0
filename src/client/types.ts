/** What the API answers, as far as this client reads it; `/openapi.json` has the whole. Instants are RFC 3339 in UTC. */

import type { RunEffect } from "./effects.ts";

/** What runs: `function` and `remote` jobs have a name and a version, the other kinds fields of their own. */
export type Job = { kind: string; name?: string; version?: number; [field: string]: unknown };

export type RunState = "queued" | "blocked" | "running" | "retrying" | "succeeded" | "failed" | "canceled" | "skipped";

export type Fault = { code: string; message: string };

/** What a schedule is called now; `key` is null where it has none, or is deleted. */
export type ScheduleNames = { key: string | null; name: string };

export type ListedRun = {
  runId: string;
  scheduleId: string | null;
  schedule: ScheduleNames | null;
  state: RunState;
  class: string;
  trigger: string;
  job: Job | null;
  revision: number | null;
  attempt: number;
  scheduledAt: string;
  dueAt: string;
  admittedAt: string;
  startedAt: string | null;
  finishedAt: string | null;
  skipReason: string | null;
  heldBy: string | null;
  cancellationRequested: boolean;
  error: Fault | null;
  result: { sha256: string; size: number; mediaType: string | null } | null;
  worker: string | null;
  leaseUntil: string | null;
  callbackDueAt: string | null;
};
/** `effects`: what its success brings about outside. */
export type Run = ListedRun & {
  payload: Record<string, unknown>;
  effects: RunEffect[];
  /** Where the run was given up. */
  deadLetter: { state: string; reason: string; fingerprint: string; failedAt: string; replays: number } | null;
};

export type RunPage = { items: ListedRun[]; next: string | null; watermark: string };

export type Attempt = {
  attempt: number;
  worker: string;
  startedAt: string;
  endedAt: string | null;
  outcome: string;
  error: Fault | null;
  detachedAt: string | null;
  adoptedBy: string | null;
  /** As the job last said it. */
  progress: unknown;
  logBytes: number | null;
};

/** Where a result's bytes are for the next minutes, and what they must be. */
export type ResultLink = {
  runId: string;
  url: string;
  expiresAt: string;
  sha256: string;
  size: number;
  mediaType: string | null;
};

/** The same twice: for machines, and in the rule's zone by the server's own tz data (RFC 9557). */
export type BothInstants = { at: string; local: string };

/** `capped`: there are at least so many. */
export type Count = { value: number; capped: boolean };

export type Rule = { kind: string } & Record<string, unknown>;

/** What a calendar does to an instant on a day it excludes: a skip, or the same time on the next business day. */
export type CalendarUse = { name: string; onExcluded: "exclude" | "shift" };

export type Schedule = {
  scheduleId: string;
  revision: number;
  status: string;
  key: string | null;
  name: string;
  labels: Record<string, string>;
  notes: string | null;
  rule: Rule;
  job: Job;
  class: string;
  payload: Record<string, unknown>;
  calendars?: CalendarUse[] | undefined;
  effects?: ({ name: string; kind: string } & Record<string, unknown>)[] | undefined;
  nextRunAt: string | null;
  nextRun: BothInstants | null;
  /** Why the rule cannot be computed at the moment, and when it is tried again (null: while paused, not at all). */
  fault: { message: string; retryAt: string | null } | null;
  /** Open dead letters; only where one schedule is read. */
  deadLetters?: Count | undefined;
  createdAt: string;
  updatedAt: string;
};

/** `changed` is false when it was so already. */
export type ScheduleChange = { schedule: Schedule; changed: boolean };
/** `plan`: how many of the instants missed while paused become runs, and how many are skipped (null: too many to count). */
export type ScheduleResumed = ScheduleChange & { plan: { runs: number; skipped: number | null } };
/** `canceled`: runs that waited. */
export type ScheduleDeleted = { scheduleId: string; canceled: number };
export type RunMade = { runId: string; state: string };

/** `expectedVersion`: the version the change was made for; 0: there must be none yet. */
export type CalendarDraft = Partial<CalendarDays> & { expectedVersion: number };

type CalendarDays = {
  zone?: string | undefined;
  /** `saturday` and so on. */
  weekend: string[];
  dates: { date: string; name?: string | undefined }[];
  ranges: { from: string; to: string; name?: string | undefined }[];
  /** `12-25` */
  yearly: { date: string; name?: string | undefined }[];
};
type CalendarVersion = { name: string; version: number; actor: string; createdAt: string };
export type Calendar = CalendarVersion & CalendarDays;
/** Without its dates: how many there are. */
export type ListedCalendar = CalendarVersion & { entries: number };
export type CalendarPage = { items: ListedCalendar[]; next: string | null };

export type SchedulePage = { items: Schedule[]; next: string | null };

/**
 * What an ad hoc run is made from: its job, and other fields as the API takes them. `payloadJson` is sent as it is written,
 * so that the API judges every digit of it.
 */
export type RunDraft = {
  job: Job;
  class?: string;
  payloadJson?: string;
  [field: string]: unknown;
};

/** What a schedule is created from. */
export type ScheduleDraft = RunDraft & {
  name: string;
  rule: Rule;
  key?: string;
  labels?: Record<string, string>;
  calendars?: CalendarUse[];
};

export type LedgerItem =
  | (BothInstants & {
      kind: "ran" | "pending" | "skipped";
      runId: string;
      state: RunState;
      outcome: { attempts: number; startedAt: string | null; finishedAt: string | null; error: Fault | null } | null;
      reason: string | null;
      trigger: string;
      revision: number;
    })
  /** Many skipped instants in a row; `backfilled` of them have become runs since and are listed after it. */
  | (BothInstants & {
      kind: "range";
      to: BothInstants;
      instants: number | null;
      backfilled: number;
      reason: string;
      revision: number;
    });

/** Every nominal instant of a period, a page at a time. `complete` and `counts` are of the whole period up to `verifiedTo`. */
export type Ledger = {
  scheduleId: string;
  from: string;
  to: string;
  complete: boolean;
  verifiedTo: string;
  decidedTo: string | null;
  holes: { kind: string; after: string | null; before: string | null; expected: string }[];
  counts: { ran: Count; pending: Count; skipped: Count };
  recomputed: "agrees" | "differs" | "not-applicable";
  notes: string[];
  items: LedgerItem[];
  next: string | null;
  watermark: string;
};

import { randomUUID } from "node:crypto";
import { type Http, pathOf } from "./http.ts";
import type { Operation } from "./operations.ts";
import type { Attempt, Count, Fault, Job, ListedRun, RunState } from "./types.ts";

/** Runs that were given up, until a person has decided about them. Instants are RFC 3339 in UTC. */

export type LetterState = "open" | "replayed" | "dismissed";

export type DeadLetter = {
  runId: string;
  scheduleId: string | null;
  scheduledAt: string;
  class: string;
  state: LetterState;
  reason: string;
  fingerprint: string;
  attempts: number;
  error: Fault | null;
  failedAt: string;
  resolvedAt: string | null;
  resolvedBy: string | null;
  replays: number;
  /** null: its history was removed. */
  job: Job | null;
};

export type DeadLetterDecision = {
  resolution: "replayed" | "dismissed";
  resolvedAt: string;
  resolvedBy: string;
  /** What that API key is called; null where it is none. */
  resolvedByLabel: string | null;
  reason: string | null;
  operationId: string | null;
  failedAt: string;
  failure: string;
  attempts: number;
  error: Fault | null;
};

export type DeadLetterDetail = {
  letter: DeadLetter;
  /** null: its history was removed. */
  run: ListedRun | null;
  payload: { kind: "revision"; scheduleId: string; revision: number } | { kind: "own"; runId: string } | null;
  attempts: Attempt[];
  /** The latest decision first. */
  history: DeadLetterDecision[];
};

export type DeadLetterGroup = {
  fingerprint: string;
  count: Count;
  schedules: number;
  reason: string;
  error: Fault | null;
  firstAt: string;
  lastAt: string;
  sampleRunId: string;
  /** Of the sample. */
  job: Job | null;
};

/** Which open letters are meant; all fields must fit. */
export type LetterFilter = {
  scheduleId?: string;
  class?: string;
  reason?: string;
  fingerprint?: string;
  /** When the run was given up: from (inclusive) and to (exclusive). */
  from?: string;
  to?: string;
};

export type LettersRequest = {
  filter: LetterFilter;
  /** Default true: it only says what would be done. */
  dryRun?: boolean;
  /** Of replays: most runs a second. */
  pacePerSecond?: number;
  reason?: string;
};

export type LettersPlan = {
  letters: Count;
  counts: Record<string, number>;
  sample: DeadLetter[];
  estimatedSeconds: number;
};

/** `plan` is null when an earlier request with the same key made the operation; `operation` is null for a dry run. */
export type LettersAnswer = { dryRun: boolean; plan: LettersPlan | null; operation: Operation | null };

type LetterPage = { items: DeadLetter[]; next: string | null };

export type DeadLetters = {
  list(filters?: LetterFilter & { state?: string; limit?: number; after?: string }): Promise<LetterPage>;
  groups(filter?: LetterFilter): Promise<DeadLetterGroup[]>;
  get(run: string): Promise<DeadLetterDetail>;
  /** Runs it again, once for an `idempotencyKey`; without one, one is made for this call. */
  replay(run: string, reason?: string, idempotencyKey?: string): Promise<{ runId: string; state: RunState }>;
  /** `changed` is false when it was dismissed already. */
  dismiss(run: string, reason?: string): Promise<{ runId: string; state: LetterState; changed: boolean }>;
  /** What that would do, or (`dryRun: false`) the operation that does it. */
  replayMany(request: LettersRequest, idempotencyKey?: string): Promise<LettersAnswer>;
  dismissMany(request: LettersRequest, idempotencyKey?: string): Promise<LettersAnswer>;
};

export function deadLettersOf(http: Http): DeadLetters {
  const many =
    (verb: string) =>
    (request: LettersRequest, idempotencyKey: string = randomUUID()) =>
      http.call<LettersAnswer>({
        method: "POST",
        path: `/v1/dead-letters/${verb}`,
        headers: { "idempotency-key": idempotencyKey },
        body: JSON.stringify(request),
      });
  return {
    list: (filters = {}) => http.call({ path: "/v1/dead-letters", query: filters }),
    async groups(filter = {}) {
      return (await http.call<{ items: DeadLetterGroup[] }>({ path: "/v1/dead-letters/groups", query: filter })).items;
    },
    get: (run) => http.call({ path: pathOf`/v1/dead-letters/${run}` }),
    replay: (run, reason, idempotencyKey = randomUUID()) =>
      http.call({
        method: "POST",
        path: pathOf`/v1/dead-letters/${run}/replay`,
        headers: { "idempotency-key": idempotencyKey },
        body: JSON.stringify({ reason }),
      }),
    dismiss: (run, reason) =>
      http.call({
        method: "POST",
        path: pathOf`/v1/dead-letters/${run}/dismiss`,
        body: JSON.stringify({ reason }),
      }),
    replayMany: many("replay"),
    dismissMany: many("dismiss"),
  };
}

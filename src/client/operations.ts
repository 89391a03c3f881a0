import { randomUUID } from "node:crypto";
import { type Http, pathOf } from "./http.ts";
import type { Count, ScheduleNames } from "./types.ts";

/** Long work on many runs, which has a row of its own. Instants are RFC 3339 in UTC. */

export type OperationState = "pending" | "working" | "done" | "canceled" | "failed";

export type Operation = {
  operationId: string;
  kind: string;
  scheduleId: string | null;
  schedule: ScheduleNames | null;
  state: OperationState;
  arguments: Record<string, unknown>;
  done: number;
  failed: number;
  /** null: too many to count. */
  total: number | null;
  /** What it found and did, by name. */
  counts: Record<string, number>;
  pacePerSecond: number | null;
  message: string | null;
  actor: string;
  reason: string | null;
  createdAt: string;
  updatedAt: string;
  nextStepAt: string | null;
  finishedAt: string | null;
};

export type OperationPage = { items: Operation[]; next: string | null };

export type BackfillRequest = {
  /** Nominal instants from (inclusive) and to (exclusive), RFC 3339. */
  from: string;
  to: string;
  policy?: string;
  /** Default true: it only says what would be done. */
  dryRun?: boolean;
  pacePerSecond?: number;
  reason?: string;
};

export type BackfillPlan = {
  revision: number;
  instants: Count;
  runs: Count;
  counts: Record<string, number>;
  firstAt: string | null;
  lastAt: string | null;
  sample: { at: string; dueAt: string; was: string; reason: string | null }[];
  estimatedSeconds: number;
};

/** `plan` is null when an earlier request with the same key made the operation; `operation` is null for a dry run. */
export type BackfillAnswer = { dryRun: boolean; plan: BackfillPlan | null; operation: Operation | null };

export type OperationFilters = {
  state?: string;
  scheduleId?: string;
  /** Those that a request with this idempotency key began; with `scheduleId`, a backfill. */
  requestKey?: string;
  limit?: number;
  after?: string;
};

export type Operations = {
  list(filters?: OperationFilters): Promise<OperationPage>;
  get(operation: string): Promise<Operation>;
  /** `changed` is false when it was canceled already. */
  cancel(operation: string): Promise<{ operation: Operation; changed: boolean }>;
};

export function operationsOf(http: Http): Operations {
  return {
    list: (filters = {}) => http.call({ path: "/v1/operations", query: filters }),
    get: (operation) => http.call({ path: pathOf`/v1/operations/${operation}` }),
    cancel: (operation) => http.call({ method: "POST", path: pathOf`/v1/operations/${operation}/cancel`, body: "{}" }),
  };
}

/** One operation for an `idempotencyKey`; without one, one is made for this call. */
export type Backfill = (schedule: string, request: BackfillRequest, idempotencyKey?: string) => Promise<BackfillAnswer>;

export function backfillOf(http: Http): Backfill {
  return (schedule, request, idempotencyKey = randomUUID()) =>
    http.call({
      method: "POST",
      path: pathOf`/v1/schedules/${schedule}/backfill`,
      headers: { "idempotency-key": idempotencyKey },
      body: JSON.stringify(request),
    });
}

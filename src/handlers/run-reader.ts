import type { RunState, SkipReason, Trigger } from "../domain/states.ts";
import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";

/** One run as a report sees it; instants in epoch ms. */
export type RunSummaryRow = {
  id: Uuid;
  scheduleId: Uuid | null;
  /** null for an ad hoc run. */
  scheduleName: string | null;
  class: string;
  trigger: Trigger;
  state: RunState;
  skipReason: SkipReason | null;
  attempts: number;
  scheduledAt: Instant;
  dueAt: Instant;
  startedAt: Instant | null;
  finishedAt: Instant | null;
  resultSize: number | null;
  errorCode: string | null;
  errorMessage: string | null;
};

/** Read access to a tenant's own runs. */
export type RunReader = {
  /** Runs whose nominal instant lies in [fromAt, toAt), oldest first, in pages of bounded size. */
  runsBetween(tenantId: Uuid, fromAt: Instant, toAt: Instant): AsyncIterable<readonly RunSummaryRow[]>;
};

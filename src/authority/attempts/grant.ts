import type { Payload, ResourceClass } from "../../domain/definition.ts";
import type { Fence } from "../../domain/fence.ts";
import type { Job } from "../../domain/jobs/job.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import type { ClaimableRun } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { loadAssignments } from "./assignment.ts";

/** Leave to run one attempt. The worker's trust in it counts from before it sent the claim. */
export type Grant = {
  runId: Uuid;
  scheduleId: Uuid | null;
  tenantId: Uuid;
  class: string;
  scheduledAt: Instant;
  dueAt: Instant;
  startedAt: Instant;
  attempt: number;
  fence: Fence;
  /** Whose it is: the holder alone may renew its lease, detach it, or give it back. */
  worker: string;
  deadlineAt: Instant;
  job: Job;
  payload: Payload;
  /** Whether the payload may hold sealed secrets. */
  maySeal: boolean;
};

/** What makes an attempt this one and no other. */
export type AttemptIdentity = Pick<Grant, "runId" | "attempt" | "fence" | "worker" | "startedAt">;

/** Adds to each identity what its run is to do, and until when at the latest. */
export async function toGrants(
  authority: Authority,
  tx: Transaction,
  runs: readonly ClaimableRun[],
  identities: readonly AttemptIdentity[],
): Promise<Grant[]> {
  const assignments = await loadAssignments(authority, tx, runs);
  return runs.map((run, i) => {
    const identity = identities[i]!;
    const { work, payload, maySeal } = assignments.get(run.id)!;
    const classLimitMs = authority.settings.attemptLimitMs[run.class as ResourceClass] ?? work.attemptTimeoutMs;
    return {
      ...identity,
      scheduleId: run.schedule_id,
      tenantId: run.tenant_id,
      class: run.class,
      scheduledAt: run.scheduled_at,
      dueAt: run.due_at,
      deadlineAt: run.deadline_at ?? identity.startedAt + Math.min(work.attemptTimeoutMs, classLimitMs),
      job: work.job,
      payload,
      maySeal,
    };
  });
}

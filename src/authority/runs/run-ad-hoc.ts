import type { Payload, Work } from "../../domain/definition.ts";
import { LANE_OF, type NewRun } from "../../domain/materialization.ts";
import { hasEffects } from "../../domain/planning/told-ends.ts";
import { bucketFor, instantOf, mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { type RequestKey, takeRequestKey } from "../../store/rows/request-keys.ts";
import { findRunState } from "../../store/rows/runs/run-state.ts";
import type { Authority } from "../authority.ts";
import { refuse, transactOrRefuse } from "../refusal.ts";
import { refusalOfRun } from "../tenants/admit.ts";
import { bearRuns } from "./bear.ts";
import type { RunMade } from "./run-now.ts";

/**
 * One run of its own, without a schedule: it brings its work along and competes with nobody.
 * Locks   request_key (scope: the tenant), by inserting it; tenant_quota, where it limits runs.
 * Time    authority time; it is the run's nominal instant.
 * Writes  request_key, run, live_run, outbox, tenant_day, audit_event.
 * Replay  the same key and body: the same run.
 */
export async function runAdHoc(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; requestKey?: RequestKey; work: Work; payload: Payload },
): Promise<RunMade> {
  const { tenantId, actor, requestKey, work, payload } = request;
  const outcome = await transactOrRefuse<RunMade>(authority, "run-ad-hoc", async (tx) => {
    const nowAt = await tx.authorityNow();
    const runId = mintId(nowAt, requestKey === undefined ? randomBucket() : bucketFor(tenantId, requestKey.key));
    if (requestKey !== undefined) {
      const taken = await takeRequestKey(tx, tenantId, requestKey, runId);
      if (taken.kind === "reused") refuse<RunMade>({ kind: "key-reused" });
      if (taken.kind === "repeated") {
        const state = await findRunState(tx, tenantId, taken.subject);
        if (state === undefined) refuse<RunMade>({ kind: "key-reused" });
        return { kind: "repeated", runId: taken.subject, state };
      }
    }
    const refused = await refusalOfRun(tx, tenantId, payload);
    if (refused !== undefined) refuse<RunMade>(refused);
    const scheduledAt = instantOf(runId);
    const run: NewRun = {
      id: runId,
      scheduleId: null,
      tenantId,
      class: work.class,
      lane: LANE_OF[work.priority],
      revision: null,
      trigger: "api",
      scheduledAt,
      dueAt: scheduledAt,
      prevScheduledAt: null,
      startDeadlineAt: work.startDeadlineMs === undefined ? null : scheduledAt + work.startDeadlineMs,
      heldBy: "none",
      guard: runId,
      hasEffects: hasEffects(work),
    };
    await bearRuns(tx, [run], new Map([[runId, { job: work, payload }]]), nowAt);
    await writeAudit(tx, { tenantId, actor, action: "run.create", subject: runId });
    return { kind: "created", runId, state: "queued" };
  });
  if (outcome.kind === "created") authority.signals.outboxGrew(0);
  return outcome;
}

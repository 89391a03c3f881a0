import type { RunState } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { type AuditEvent, writeAudit } from "../../store/rows/audit.ts";
import { markCancelRequested } from "../../store/rows/runs/live-marks.ts";
import type { LiveRun } from "../../store/rows/runs/live-runs.ts";
import { readRecordedStates } from "../../store/rows/runs/run-state.ts";
import { announce } from "../announce.ts";
import { type Departure, depart } from "../attempts/depart.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, transactOrRefuse } from "../refusal.ts";
import { lockWithSiblings } from "./lock-with-siblings.ts";

/** `actor`: who asks, where a person does; what other verbs cancel is on record with them. */
export type CancelRequest = { tenantId: Uuid; runId: Uuid; actor?: string };
export type CancelOutcome =
  /** The run had not started, or waited for a retry: it is canceled now. */
  | { kind: "accepted" }
  /**
   * The run is running: its worker is asked to stop; accepted when it yields or its lease ends. With `callbackDueAt` it is
   * detached: no worker hears of it, and it ends then at the latest.
   */
  | { kind: "requested"; callbackDueAt?: Instant }
  | { kind: "too-late"; state: RunState }
  | { kind: "not-found" };

/**
 * Cancels runs: at once where nobody works on them, by request where somebody does.
 * Locks   live runs and blocked siblings (two rounds; looks again where the second cannot have all).
 * Time    authority time, after the locks.
 * Writes  live_run (request) or run; outbox (the oldest blocked sibling); audit_event, once for a run. A place in an
 *         outbox row is dropped when that row is claimed.
 * Replay  `requested` again, or `too-late` with state canceled.
 */
export async function cancelRuns(
  authority: Authority,
  requests: readonly CancelRequest[],
): Promise<readonly CancelOutcome[]> {
  const done = await transactOrRefuse(authority, "cancel", (tx) => cancelIn(authority, tx, requests));
  announce(authority, done);
  return done.outcomes;
}

async function cancelIn(authority: Authority, tx: Transaction, requests: readonly CancelRequest[]) {
  const ids = [...new Set(requests.map((request) => request.runId))];
  const live = await lockWithSiblings(tx, ids);
  const ended = await readRecordedStates(
    tx,
    ids.filter((id) => !live.has(id)),
  );
  await authority.faults.reach("cancel:locked");
  const nowAt = await tx.authorityNow();
  const departures: Departure[] = [];
  const asked: Uuid[] = [];
  const events: AuditEvent[] = [];
  const note = ({ tenantId, runId, actor }: CancelRequest, run: LiveRun, state: "canceled" | "running") => {
    // Asking again changes nothing.
    if (actor === undefined || run.cancel_requested_at !== null) return;
    events.push({
      tenantId,
      actor,
      action: "run.cancel",
      subject: runId,
      before: { state: run.state },
      after: { state },
    });
  };
  const outcomes = requests.map((request): CancelOutcome => {
    const run = live.get(request.runId);
    if (run === undefined) {
      const past = ended.get(request.runId);
      if (past === undefined || past.tenant_id !== request.tenantId) return { kind: "not-found" };
      // Opened again just now.
      return past.state === "open" ? lookAgain() : { kind: "too-late", state: past.state };
    }
    if (run.tenant_id !== request.tenantId) return { kind: "not-found" };
    if (run.state === "running") {
      asked.push(run.id);
      note(request, run, "running");
      return { kind: "requested", ...(run.worker === null && { callbackDueAt: run.lease_until! }) };
    }
    note(request, run, "canceled");
    live.delete(run.id);
    ended.set(run.id, { id: run.id, tenant_id: run.tenant_id, state: "canceled" });
    departures.push({
      kind: "end",
      run: { ...run, cancel_requested_at: run.cancel_requested_at ?? nowAt },
      state: "canceled",
    });
    return { kind: "accepted" };
  });
  await markCancelRequested(tx, asked, nowAt);
  const intents = await depart(tx, departures, nowAt);
  for (const event of events) await writeAudit(tx, event);
  await authority.faults.reach("cancel:written");
  return { outcomes, departures, intents, nowAt };
}

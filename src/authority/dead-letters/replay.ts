import { REPLAYABLE_ALONE } from "../../domain/dead-letters.ts";
import type { RunState } from "../../domain/states.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { readLetterKeys } from "../../store/rows/dead-letters.ts";
import { type RequestKey, takeRequestKey } from "../../store/rows/request-keys.ts";
import { findRunState } from "../../store/rows/runs/run-state.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";
import { type QuotaRefusal, refusalOfRun } from "../tenants/admit.ts";
import { lockGraves, type Reopened, reopen } from "./reopen.ts";

export type ReplayOutcome =
  | Exclude<Reopened, { kind: "undecided" }>
  | { kind: "repeated"; state: RunState }
  | QuotaRefusal
  | { kind: "key-reused" };

/**
 * Opens a run again that was given up: the same run, with a fresh budget, behind whatever waits. Also one whose letter was
 * dismissed before.
 * Locks   request_key (scope: the run), by inserting it; tenant_quota, where it limits runs; schedule_cursor, schedule; what hearing of ends locks; guard
 *         holders and the run, skipping what others hold; dead_letter.
 * Time    authority time, after the locks; the history floor is read after them, too.
 * Writes  request_key, run, live_run, outbox, tenant_day, dead_letter, dead_letter_resolution, audit_event; what hearing writes.
 * Replay  the same key and body: where the run stands by now. Without a key: `not-failed`.
 */
export async function replayRun(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; runId: Uuid; reason: string | null; requestKey?: RequestKey },
): Promise<ReplayOutcome> {
  const { tenantId, actor, runId, reason, requestKey } = request;
  const outcome = await transactOrRefuse<ReplayOutcome>(authority, "replay", async (tx) => {
    if (requestKey !== undefined) {
      const taken = await takeRequestKey(tx, runId, requestKey, runId);
      if (taken.kind === "reused") refuse<ReplayOutcome>({ kind: "key-reused" });
      if (taken.kind === "repeated") {
        const state = await findRunState(tx, tenantId, runId);
        return state === undefined ? refuse<ReplayOutcome>({ kind: "not-found" }) : { kind: "repeated", state };
      }
    }
    const hindered = await refusalOfRun(tx, tenantId, undefined);
    const keys = await readLetterKeys(tx, tenantId, [runId]);
    const graves = await lockGraves(authority, tx, tenantId, keys, REPLAYABLE_ALONE);
    if (keys.length === 0) refuse<ReplayOutcome>({ kind: "not-found" });
    const refused = graves.outcomes.get(runId);
    if (refused?.kind === "undecided") lookAgain();
    if (refused?.kind === "not-failed") {
      refuse<ReplayOutcome>({ ...refused, state: (await findRunState(tx, tenantId, runId)) ?? refused.state });
    }
    if (refused !== undefined) refuse<ReplayOutcome>(refused as ReplayOutcome);
    if (hindered !== undefined) refuse<ReplayOutcome>(hindered);
    await reopen(authority, tx, graves, [runId], { actor, reason, operationId: null });
    await writeAudit(tx, { tenantId, actor, action: "run.replay", subject: runId, after: { reason } });
    return graves.outcomes.get(runId) as ReplayOutcome;
  });
  if (outcome.kind === "replayed") {
    authority.metrics.replays.inc();
    authority.signals.outboxGrew(0);
  }
  return outcome;
}

import { type LetterState, standingOf } from "../../domain/dead-letters.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { type Decision, lockLetters, resolveLetters } from "../../store/rows/dead-letters.ts";
import type { Authority } from "../authority.ts";

export type Dismissed = { kind: "dismissed" } | { kind: "resolved"; state: LetterState } | { kind: "not-found" };

/**
 * Resolves dead letters without running anything: their runs stay failed.
 * Locks   dead_letter, waiting: who ends or replays a run takes it last.
 * Time    authority time, after the locks.
 * Writes  dead_letter, dead_letter_resolution, audit_event.
 * Replay  `resolved`, with what was decided.
 */
export async function dismissLetter(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; runId: Uuid; reason: string | null },
): Promise<Dismissed> {
  const { tenantId, actor, runId, reason } = request;
  return authority.transact("dismiss", async (tx) => {
    const [outcome] = await dismissIn(authority, tx, tenantId, [{ id: runId }], { actor, reason, operationId: null });
    if (outcome!.kind === "dismissed") {
      await writeAudit(tx, { tenantId, actor, action: "dead-letter.dismiss", subject: runId, after: { reason } });
    }
    return outcome!;
  });
}

/** The same for who decides about many at once, each perhaps of a certain failure; in their order. */
export async function dismissIn(
  authority: Authority,
  tx: Transaction,
  tenantId: Uuid,
  wanted: readonly { id: Uuid; at?: Instant }[],
  decision: Decision,
): Promise<Dismissed[]> {
  const letters = await lockLetters(
    tx,
    tenantId,
    wanted.map((one) => one.id),
  );
  await authority.faults.reach("dismiss:locked");
  const nowAt = await tx.authorityNow();
  const stateOf = ({ id, at }: { id: Uuid; at?: Instant }) => standingOf(letters.get(id), at);
  const open = wanted.filter((one) => stateOf(one) === "open").map((one) => one.id);
  await resolveLetters(tx, open, "dismissed", decision, nowAt);
  return wanted.map((one) => {
    const state = stateOf(one);
    if (state === undefined) return { kind: "not-found" };
    return state === "open" ? { kind: "dismissed" } : { kind: "resolved", state };
  });
}

import type { Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import type { Authority } from "../authority.ts";

/**
 * Writes down what somebody is about to do to a tenant's hints on the board. The doing itself is Redis's and shares no
 * transaction with this: what is written here was asked for, and may have failed.
 * Locks   none.
 * Time    the event's own, by default.
 * Writes  an audit event.
 * Replay  one more event.
 */
export function recordBoardAction(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; action: string; class: string; details: Record<string, unknown> },
): Promise<void> {
  const { tenantId, actor, action, class: subject, details } = request;
  return authority.transact("record-board-action", (tx) =>
    writeAudit(tx, { tenantId, actor, action: `hints.${action}`, subject, after: details }),
  );
}

import { TEST_EVENT } from "../../domain/webhooks/events.ts";
import {
  type DeliveryReport,
  decideDelivery,
  decideHealth,
  type HealthChange,
} from "../../domain/webhooks/settlement.ts";
import type { Instant } from "../../kernel/clock.ts";
import { showId, type Uuid } from "../../kernel/ids.ts";
import { storableText } from "../../kernel/storable.ts";
import type { Transaction } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { type DeliveryRow, lockDeliveries, updateDeliveries } from "../../store/rows/webhooks/deliveries.ts";
import {
  type EndpointRow,
  lockEndpointsToSettle,
  noteDelivery,
  updateEndpoint,
} from "../../store/rows/webhooks/endpoints.ts";
import type { Authority } from "../authority.ts";

export type SettledDelivery =
  | { kind: "settled"; state: DeliveryRow["state"]; disabled: boolean }
  /** Its lease was over and somebody else is at it, or it was settled: this report changes nothing. */
  | { kind: "stale" };

/**
 * Records what came of an attempt to deliver; an endpoint that only fails is disabled.
 * Locks   the delivery; the endpoint, where it fails or has failed lately.
 * Time    authority time, after the locks.
 * Writes  webhook_delivery, webhook_endpoint, an audit event where it is disabled.
 * Replay  `stale`, nothing written.
 */
export async function settleDelivery(
  authority: Authority,
  attempt: { id: bigint; claimId: Uuid; report: DeliveryReport },
): Promise<SettledDelivery> {
  const { id, claimId, report } = attempt;
  const outcome = await authority.transact("settle-delivery", async (tx): Promise<SettledDelivery> => {
    const [row] = await lockDeliveries(tx, [id]);
    if (row === undefined || row.state !== "sending" || row.claim_id !== claimId) return { kind: "stale" };
    const of = [row.endpoint_id];
    const isWell = report.kind === "delivered";
    const endpoints = await lockEndpointsToSettle(tx, { failing: isWell ? [] : of, well: isWell ? of : [] });
    await authority.faults.reach("settle-delivery:locked");
    const nowAt = await tx.authorityNow();
    const spent = { attempts: row.budget_attempts, budgetFrom: row.budget_from, isTest: row.type === TEST_EVENT };
    const settlement = decideDelivery(report, spent, nowAt, authority.chance());
    const isPending = settlement.state === "pending";
    const wasTried = report.kind !== "not-sent";
    await updateDeliveries(tx, [
      {
        ...row,
        state: settlement.state,
        claim_id: null,
        next_attempt_at: isPending ? settlement.nextAttemptAt : row.next_attempt_at,
        settled_at: isPending ? null : nowAt,
        budget_attempts: row.budget_attempts - (wasTried ? 0 : 1),
        answer_status: report.kind === "gone" ? 410 : "status" in report ? report.status : row.answer_status,
        message: "message" in report ? storableText(report.message) : null,
      },
    ]);
    const endpoint = endpoints.get(row.endpoint_id);
    const change =
      endpoint && decideHealth({ failures: endpoint.failures, failingSince: endpoint.failing_since }, report, nowAt);
    const disabled = endpoint !== undefined && change !== undefined && (await writeHealth(tx, endpoint, change, nowAt));
    if (isWell) await noteDelivery(tx, of, nowAt);
    return { kind: "settled", state: settlement.state, disabled };
  });
  if (outcome.kind === "settled") {
    authority.metrics.deliveries.inc({ outcome: outcome.state === "pending" ? "retry" : outcome.state });
    if (outcome.disabled) authority.metrics.webhooksDisabled.inc();
  }
  return outcome;
}

/** Whether this disables it. One that a person has disabled meanwhile stays as it is. */
async function writeHealth(tx: Transaction, row: EndpointRow, change: HealthChange, nowAt: Instant): Promise<boolean> {
  if (change.kind === "none") return false;
  const { failures, failingSince: failing_since } = change.health;
  const after = { ...row, failures, failing_since };
  if (change.kind === "counted" || row.status === "disabled") {
    await updateEndpoint(tx, after);
    return false;
  }
  await updateEndpoint(tx, { ...after, status: "disabled", disabled_at: nowAt, disabled_reason: change.reason });
  await writeAudit(tx, {
    tenantId: row.tenant_id,
    actor: "punctual",
    action: "webhook.disable",
    subject: showId("whk", row.id),
    before: { status: "enabled" },
    after: { status: "disabled", reason: change.reason },
  });
  return true;
}

import { TEST_EVENT } from "../../domain/webhooks/events.ts";
import { type EventFacts, messageOf } from "../../domain/webhooks/message.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { readOwnWork } from "../../store/rows/runs/own-work.ts";
import {
  type DeliveryRow,
  deleteDeliveries,
  lockDeliveries,
  lockDeliveriesSkipping,
  updateDeliveries,
} from "../../store/rows/webhooks/deliveries.ts";
import { type EndpointRow, readEndpoints } from "../../store/rows/webhooks/endpoints.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";

export type DeliveryClaim = {
  claimId: Uuid;
  ids: readonly bigint[];
  /** How long nobody else may send them; longer than the longest send. */
  leaseMs: number;
  /** The same claim was made before and its answer never came. */
  repeated: boolean;
};

/** Leave to try a delivery once. */
export type DeliveryGrant = {
  id: bigint;
  tenantId: Uuid;
  endpointId: Uuid;
  claimId: Uuid;
  url: string;
  /** The same in every attempt, for every endpoint. */
  eventId: string;
  body: string;
  attempt: number;
};

/**
 * Turns due deliveries into attempts. One whose sender was not heard of is due again by itself: it may arrive twice.
 * Locks   deliveries, skipping what others hold; a repeat waits for them.
 * Time    authority time and the server's identity, after the locks: nothing is sent from a copy that may have lost commits.
 * Writes  webhook_delivery. What is for a disabled endpoint is given up, what is for none any more is gone.
 * Replay  the same claim id: the same grants.
 */
export function claimDeliveries(authority: Authority, claim: DeliveryClaim): Promise<DeliveryGrant[]> {
  const { claimId, ids, leaseMs, repeated } = claim;
  return authority.transact("claim-deliveries", async (tx) => {
    const rows = repeated ? await lockDeliveries(tx, ids) : await lockDeliveriesSkipping(tx, ids);
    const endpoints = await readEndpoints(tx, [...new Set(rows.map((row) => row.endpoint_id))]);
    if (repeated) {
      const saved = rows.filter((row) => row.state === "sending" && row.claim_id === claimId);
      if (saved.length > 0) return toGrants(tx, saved, endpoints);
    }
    await authority.faults.reach("claim-deliveries:locked");
    const { now: nowAt } = await readServer(tx, 0);
    const due = rows.filter((row) => row.settled_at === null && row.next_attempt_at <= nowAt);
    const sending: DeliveryRow[] = [];
    const givenUp: DeliveryRow[] = [];
    for (const row of due) {
      const endpoint = endpoints.get(row.endpoint_id);
      if (endpoint === undefined) continue;
      if (endpoint.status === "disabled" && row.type !== TEST_EVENT) {
        givenUp.push({
          ...row,
          state: "failed",
          claim_id: null,
          settled_at: nowAt,
          message: "its endpoint is disabled",
        });
        continue;
      }
      sending.push({
        ...row,
        state: "sending",
        claim_id: claimId,
        next_attempt_at: nowAt + leaseMs,
        attempts: row.attempts + 1,
        budget_attempts: row.budget_attempts + 1,
      });
    }
    await deleteDeliveries(
      tx,
      due.filter((row) => !endpoints.has(row.endpoint_id)).map((row) => row.id),
    );
    await updateDeliveries(tx, [...sending, ...givenUp]);
    await authority.faults.reach("claim-deliveries:written");
    return toGrants(tx, sending, endpoints);
  });
}

async function toGrants(
  tx: Transaction,
  rows: readonly DeliveryRow[],
  endpoints: ReadonlyMap<Uuid, EndpointRow>,
): Promise<DeliveryGrant[]> {
  const jobs = await findJobs(tx, rows);
  return rows.flatMap((row) => {
    const endpoint = endpoints.get(row.endpoint_id);
    if (endpoint === undefined) return [];
    const { id, type, n, tenant_id: tenantId, run_id: runId, occurred_at: occurredAt } = row;
    const facts = { ...row.facts, job: (runId === null ? undefined : jobs.get(runId)) ?? row.facts.job };
    const message = messageOf({ id, type, n, facts, runId, occurredAt });
    return [
      {
        id,
        tenantId,
        endpointId: endpoint.id,
        claimId: row.claim_id!,
        url: endpoint.url,
        ...message,
        attempt: row.attempts,
      },
    ];
  });
}

/** Jobs that late runs brought themselves: what told of them did not know, and they never change. */
async function findJobs(tx: Transaction, rows: readonly DeliveryRow[]): Promise<Map<Uuid, EventFacts["job"]>> {
  const without = rows.flatMap(({ run_id: id, facts }) =>
    id === null || facts.job.kind !== null ? [] : [{ id, scheduled_at: instantOf(id) }],
  );
  const found = await readOwnWork(tx, without);
  return new Map([...found].flatMap(([id, { job }]) => (job === null ? [] : [[id, job.job] as const])));
}

import type { Fence } from "../../domain/fence.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";
import { located } from "../located.ts";
import { instantText } from "../values.ts";
import { countStarts } from "./rollups.ts";
import { LIVE_COLUMNS, type LiveRun } from "./runs/live-runs.ts";
import { tellLateStarts } from "./webhooks/births.ts";

type Granted = { runId: Uuid; scheduledAt: Instant; attempt: number; fence: Fence; deadlineAt: Instant };
/** A running run with the start of its present attempt (`started_at` is that of its first). */
export type SavedGrant = LiveRun & { attempt_started_at: Instant };
type Claim = { claimId: Uuid; worker: string; nowAt: Instant };

const START = sql(
  "grants_start",
  `with running as (
   update live_run l
      set state = 'running', attempt = g.attempt, fence = g.fence, claim_id = $5, worker = $6,
          lease_until = least($7, g.deadline_at), last_heartbeat_at = $8, deadline_at = g.deadline_at, started_at = coalesce(l.started_at, $8)
     from ${located("live_run", "$1::uuid[], $2::int[], $3::bigint[], $4::timestamptz[]", "id, attempt, fence, deadline_at")} g
    where l.ctid = g.place
   returning l.id, l.scheduled_at, l.schedule_id, l.tenant_id, l.class, l.revision, l.due_at, l.admitted_at, l.started_at, l.held_by),
   late as (${tellLateStarts("running", "$8")})
   ${countStarts("running", "$8")}`,
);
const INSERT_ATTEMPTS = sql(
  "grants_insert_attempts",
  `insert into attempt (scheduled_at, run_id, n, claim_id, fence, worker, started_at)
   select scheduled_at, run_id, n, $5, fence, $6, $7
     from unnest($1::timestamptz[], $2::uuid[], $3::int[], $4::bigint[]) as g (scheduled_at, run_id, n, fence)`,
);
const OF_CLAIM = `select ${LIVE_COLUMNS},
          (select a.started_at from attempt a
            where a.scheduled_at = l.scheduled_at and a.run_id = l.id and a.n = l.attempt) as attempt_started_at
     from live_run l where claim_id = $1 and worker = $2 and state = 'running'`;
const READ_OF_CLAIM = sql("grants_read_of_claim", `${OF_CLAIM} order by fence`);
const READ_IN_LANE = sql("grants_read_in_lane", `${OF_CLAIM} and tenant_id = $3 and class = $4 order by fence`);

export async function startLiveRuns(
  tx: Queryable,
  grants: readonly Granted[],
  claim: Claim & { leaseUntil: Instant },
): Promise<void> {
  await tx.query(START, [
    grants.map((grant) => grant.runId),
    grants.map((grant) => grant.attempt),
    grants.map((grant) => grant.fence),
    grants.map((grant) => grant.deadlineAt),
    claim.claimId,
    claim.worker,
    instantText(claim.leaseUntil),
    instantText(claim.nowAt),
  ]);
}

export async function insertAttempts(tx: Queryable, grants: readonly Granted[], claim: Claim): Promise<void> {
  await tx.query(INSERT_ATTEMPTS, [
    grants.map((grant) => grant.scheduledAt),
    grants.map((grant) => grant.runId),
    grants.map((grant) => grant.attempt),
    grants.map((grant) => grant.fence),
    claim.claimId,
    claim.worker,
    instantText(claim.nowAt),
  ]);
}

/**
 * Grants that a claim was given before and its worker still holds; a rare look-up, so it walks the small table instead of
 * costing an index.
 */
export function readGrantsOf(tx: Queryable, claim: Pick<Claim, "claimId" | "worker">): Promise<SavedGrant[]> {
  return tx.query<SavedGrant>(READ_OF_CLAIM, [claim.claimId, claim.worker]);
}

/** The same in one lane, whose open runs have an index. */
export function readGrantsInLane(
  tx: Queryable,
  claim: Pick<Claim, "claimId" | "worker">,
  lane: { tenantId: Uuid; class: string },
): Promise<SavedGrant[]> {
  return tx.query<SavedGrant>(READ_IN_LANE, [claim.claimId, claim.worker, lane.tenantId, lane.class]);
}

import { decideClaim } from "../../domain/claim.ts";
import { fenceOf } from "../../domain/fence.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import {
  insertAttempts,
  readGrantsInLane,
  readGrantsOf,
  type SavedGrant,
  startLiveRuns,
} from "../../store/rows/grants.ts";
import {
  deleteOutbox,
  lockOutboxSkipping,
  lockOutboxWaiting,
  type OutboxRow,
  readOutboxIds,
} from "../../store/rows/outbox.ts";
import { type ClaimableRun, lockClaimable, readLiveRuns } from "../../store/rows/runs/live-runs.ts";
import {
  addUsage,
  countLanes,
  countStarts,
  type LaneKey,
  laneKey,
  lockUsage,
  readUsage,
  type Usage,
} from "../../store/rows/usage.ts";
import { countMissed } from "../announce.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, transactOrRefuse } from "../refusal.ts";
import { readServer } from "../server.ts";
import { type Departure, depart } from "./depart.ts";
import { type AttemptIdentity, type Grant, toGrants } from "./grant.ts";
import { type PutBack, putBack } from "./put-back.ts";
import { createRateGate } from "./rate-gate.ts";
import { isTold } from "./tell-ends.ts";

/** One hint that a worker fetched, or one outbox row taken directly. */
export type HintRef = {
  rowId: bigint;
  epoch: number;
  /** It came through Redis, which let one start of its tenant go; a row taken directly is held to the rate here. */
  fetched?: unknown;
};

export type ClaimRequest = {
  claimId: Uuid;
  worker: string;
  /** Free slots per class; never more runs are granted. */
  slots: Readonly<Record<string, number>>;
  hints: readonly HintRef[];
  /** The same claim was sent before and its answer never came. */
  repeated: boolean;
  /** Rows and grants of this lane, and no others: who claims has been told nothing of any other. */
  only?: LaneKey;
};

export type ClaimOutcome = {
  grants: Grant[];
  /** Hints that may be acknowledged: all of them, once the claim has committed. */
  counts: Record<"claimed" | "put-back" | "canceled" | "missed-deadline" | "gone" | "busy", number>;
};

/**
 * Turns hints into attempts.
 * Locks   outbox rows and live runs, skipping what others hold; blocked siblings if a run ends here; usage last.
 * Time    authority time and fences, read after every lock that decides; the usage of lanes without limit and rate is
 *         counted later and decides nothing.
 * Writes  outbox (rows deleted, what does not fit put back), live_run, attempt, usage.
 * Replay  a repeat of the claim waits for its outbox rows, then finds its claim id: the same grants.
 */
export async function claimRuns(authority: Authority, request: ClaimRequest): Promise<ClaimOutcome> {
  const claimed = await transactOrRefuse(authority, "claim", async (tx) => {
    const counts = { claimed: 0, "put-back": 0, canceled: 0, "missed-deadline": 0, gone: 0, busy: 0 };
    if (request.repeated) {
      await lockOutboxWaiting(
        tx,
        request.hints.map((hint) => hint.rowId),
      );
      const { only } = request;
      const saved = await (only === undefined ? readGrantsOf(tx, request) : readGrantsInLane(tx, request, only));
      if (saved.length > 0) {
        const grants = await toGrants(
          authority,
          tx,
          saved,
          saved.map((run) => identityOf(run, request.worker)),
        );
        return { outcome: { grants, counts: { ...counts, claimed: saved.length } }, ended: [], latenesses: [] };
      }
    }
    const locked = await lockRows(tx, request, counts);
    await authority.faults.reach("claim:outbox-locked");
    const live = await lockClaimable(
      tx,
      locked.flatMap((row) => row.runs),
    );
    await authority.faults.reach("claim:live-locked");
    const away = await readAway(tx, locked, live);
    const ended = await endThoseThatMayNotStart(tx, live);
    for (const one of ended) counts[one.state === "canceled" ? "canceled" : "missed-deadline"]++;

    const lanes = locked.map((row) => ({ tenantId: row.tenant_id, class: row.class }));
    const usage = await readLanes(tx, lanes);
    const server = await readServer(tx, live.size);
    const nowAt = server.now;
    // Row numbers repeat after a restore: a hint of another epoch names some other row.
    const hints = new Map(request.hints.map((hint) => [hint.rowId, hint]));
    const rows = locked.filter((row) => hints.get(row.id)?.epoch === server.epoch);
    const settled = new Set(ended.map((one) => one.run.id));

    const slots = new Map(Object.entries(request.slots));
    const granted: ClaimableRun[] = [];
    const back: PutBack[] = [];
    const rates = createRateGate(nowAt);
    for (const row of rows) {
      const lane = usage.lanes.get(laneKey({ tenantId: row.tenant_id, class: row.class }))!;
      const rate = rates.of(lane, hints.get(row.id)!.fetched !== undefined);
      for (const id of row.runs) {
        const run = live.get(id);
        if (run === undefined) {
          if (away.has(id)) back.push({ row, runId: id, availableAt: nowAt + 50, heldBy: undefined });
          else if (!settled.has(id)) counts.gone++;
          continue;
        }
        const decision = decideClaim(claimView(run), nowAt);
        if (decision === "not-due") back.push({ row, runId: id, availableAt: run.not_before, heldBy: undefined });
        else if (decision === "miss-deadline") {
          // Its start deadline passed while we waited for the usage row: whoever looks next ends it.
          back.push({ row, runId: id, availableAt: nowAt, heldBy: undefined });
        } else if (decision !== "claim") counts.gone++;
        else if (lane.max_running !== null && lane.running >= lane.max_running) {
          back.push({ row, runId: id, availableAt: row.available_at, heldBy: "tenant-limit" });
        } else if (rate.room <= 0) {
          back.push({ row, runId: id, availableAt: rate.againAt ?? row.available_at, heldBy: "rate" });
        } else if ((slots.get(run.class) ?? 0) <= 0) {
          back.push({ row, runId: id, availableAt: row.available_at, heldBy: undefined });
        } else {
          slots.set(run.class, slots.get(run.class)! - 1);
          lane.running++;
          rate.start();
          granted.push(run);
          // A run may be named twice in one batch; the second name finds nothing.
          live.delete(id);
        }
      }
    }

    await deleteOutbox(
      tx,
      rows.map((row) => row.id),
    );
    const identities = granted.map((run, i) => {
      const fence = fenceOf(server.epoch, server.fences[i]!);
      return { runId: run.id, attempt: run.attempt + 1, fence, worker: request.worker, startedAt: nowAt };
    });
    const grants = await toGrants(authority, tx, granted, identities);
    if (grants.length > 0) {
      const leaseUntil = nowAt + authority.settings.lease.ttlMs;
      await startLiveRuns(tx, grants, { claimId: request.claimId, worker: request.worker, nowAt, leaseUntil });
      await insertAttempts(tx, grants, { claimId: request.claimId, worker: request.worker, nowAt });
    }
    await putBack(tx, back, usage.lanes, nowAt);
    await countStarts(tx, rates.windows());
    const counted = await addUsage(tx, countLanes(granted, 1));
    // A limit set since our plain read: look again, this time under the lock.
    if (!usage.limited && [...counted.values()].some(isLimited)) lookAgain();
    await authority.faults.reach("claim:written");
    counts.claimed = granted.length;
    counts["put-back"] = back.length;
    const latenesses = granted
      .filter((run) => run.started_at === null)
      .map((run) => ({ class: run.class, heldBy: run.held_by, lateMs: nowAt - Math.max(run.due_at, run.admitted_at) }));
    return { outcome: { grants, counts }, ended, latenesses };
  });

  const { metrics } = authority;
  for (const [outcome, count] of Object.entries(claimed.outcome.counts))
    if (count > 0) metrics.claims.inc({ outcome }, count);
  for (const together of Map.groupBy(claimed.latenesses, (one) => `${one.class} ${one.heldBy}`).values()) {
    const { class: class_, heldBy } = together[0]!;
    // The series is looked up once for all its runs: that costs more than to observe.
    const series = metrics.lateness.labels({ class: class_, held_by: heldBy });
    for (const one of together) series.observe(Math.max(0, one.lateMs) / 1000);
  }
  for (const one of claimed.ended) {
    metrics.runsEnded.inc({ class: one.run.class, state: one.state });
    countMissed(authority, one);
  }
  if (claimed.outcome.counts["put-back"] > 0 || claimed.ended.length > 0) authority.signals.outboxGrew(0);
  if (claimed.ended.some(isTold)) authority.signals.scheduleMoved(0);
  return claimed.outcome;
}

/**
 * Limits are exact because they are decided under the usage row's lock. Lanes that have no limit need no decision, only
 * counting, and that comes last, so that nobody waits for them while a claim is written.
 */
async function readLanes(
  tx: Transaction,
  lanes: readonly LaneKey[],
): Promise<{ lanes: Map<string, Usage>; limited: boolean }> {
  const seen = await readUsage(tx, lanes);
  const unlimited = lanes.every((lane) => {
    const usage = seen.get(laneKey(lane));
    return usage !== undefined && !isLimited(usage);
  });
  return unlimited ? { lanes: seen, limited: false } : { lanes: await lockUsage(tx, lanes), limited: true };
}

function isLimited(lane: Usage): boolean {
  return lane.max_running !== null || lane.start_rate_per_second !== null;
}

/** Locks the outbox rows of hints; tells rows that somebody else holds from rows that are gone. */
async function lockRows(
  tx: Transaction,
  { hints, only }: Pick<ClaimRequest, "hints" | "only">,
  counts: { gone: number; busy: number },
): Promise<OutboxRow[]> {
  const ids = [...new Set(hints.map((hint) => hint.rowId))];
  const rows = (await lockOutboxSkipping(tx, ids)).filter((row) => row.kind === "run" && isIn(row, only));
  if (rows.length < ids.length) {
    // SKIP LOCKED cannot tell locked from gone; a later plain read can.
    const present = await readOutboxIds(tx, ids);
    counts.busy += present.size - rows.length;
    counts.gone += ids.length - present.size;
  }
  return rows;
}

function isIn(row: OutboxRow, lane: LaneKey | undefined): boolean {
  return lane === undefined || (row.tenant_id === lane.tenantId && row.class === lane.class);
}

/** Runs of the rows that we did not lock but that still exist: somebody else is at them right now. */
async function readAway(
  tx: Transaction,
  rows: readonly OutboxRow[],
  live: ReadonlyMap<Uuid, ClaimableRun>,
): Promise<Set<Uuid>> {
  const missing = rows.flatMap((row) => row.runs.filter((id) => !live.has(id)));
  if (missing.length === 0) return new Set();
  const found = await readLiveRuns(tx, missing);
  return new Set(
    [...found.values()].filter((run) => run.state === "queued" || run.state === "retrying").map((run) => run.id),
  );
}

/** Ends runs that were canceled or whose start deadline has passed, before usage is locked (lock order). */
async function endThoseThatMayNotStart(
  tx: Transaction,
  live: Map<Uuid, ClaimableRun>,
): Promise<Extract<Departure, { kind: "end" }>[]> {
  const doubtful = [...live.values()].filter((run) => run.cancel_requested_at !== null || run.start_deadline !== null);
  if (doubtful.length === 0) return [];
  const nowAt = await tx.authorityNow();
  const ends: Extract<Departure, { kind: "end" }>[] = [];
  for (const run of doubtful) {
    const decision = decideClaim(claimView(run), nowAt);
    if (decision === "cancel") ends.push({ kind: "end", run, state: "canceled" });
    if (decision === "miss-deadline") ends.push({ kind: "end", run, state: "skipped", skipReason: "start-deadline" });
  }
  await depart(tx, ends, nowAt);
  for (const end of ends) live.delete(end.run.id);
  return ends;
}

function claimView(run: ClaimableRun) {
  return {
    state: run.state,
    notBefore: run.not_before,
    startDeadlineAt: run.start_deadline,
    cancelRequestedAt: run.cancel_requested_at,
    attempt: run.attempt,
  };
}

function identityOf(run: SavedGrant, worker: string): AttemptIdentity {
  return { runId: run.id, attempt: run.attempt, fence: run.fence!, worker, startedAt: run.attempt_started_at };
}

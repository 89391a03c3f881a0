import { fingerprintOf } from "../../domain/fingerprint.ts";
import type { Failure, GiveUpReason } from "../../domain/retry.ts";
import type { EndedState, SkipReason } from "../../domain/states.ts";
import { LANES, type Lane } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { located } from "../../store/located.ts";
import { insertEffects, type NewEffect } from "../../store/rows/effects/effects.ts";
import { insertIntents, type OutboxRow } from "../../store/rows/outbox.ts";
import { countRetries } from "../../store/rows/rollups.ts";
import {
  type AttemptEnd,
  closeAttempts,
  type DeadLetter,
  type Ending,
  endRuns,
  insertDeadLetters,
} from "../../store/rows/runs/endings.ts";
import type { EndingRun, LiveRun } from "../../store/rows/runs/live-runs.ts";
import { addUsage, countLanes } from "../../store/rows/usage.ts";
import { instantText } from "../../store/values.ts";
import { handOn, slotsHeldBy } from "./hand-on.ts";
import { isPausing, tellEnds } from "./tell-ends.ts";

/** How a run leaves where it stands: for good, or to be tried again. The live row is locked by the caller. */
export type Departure =
  | {
      kind: "end";
      run: EndingRun;
      state: EndedState;
      skipReason?: SkipReason;
      /** How the running attempt ended, where it did not succeed. */
      attempt?: AttemptEnd["outcome"];
      failure?: Failure;
      deadLetterReason?: GiveUpReason;
      result?: Ending["result"];
      /** What is to be done outside now that it has succeeded. */
      effects?: readonly NewEffect[];
    }
  | {
      kind: "retry";
      run: LiveRun;
      notBefore: Instant;
      attempt: AttemptEnd["outcome"];
      failure?: Failure;
      /** What this attempt cost: a try of the retry budget, or an interruption. */
      spends: "retry" | "interruption" | "nothing";
      expired: boolean;
    };

const TO_RETRYING = sql(
  "depart_to_retrying",
  `with retrying as (
   update live_run l
      set state = 'retrying', not_before = d.not_before, lane = d.lane, budget_attempt = d.budget_attempt,
          interruptions = d.interruptions, expiries = d.expiries,
          fence = null, claim_id = null, worker = null, lease_until = null, deadline_at = null
     from ${located("live_run", "$1::uuid[], $2::timestamptz[], $3::smallint[], $4::int[], $5::int[], $6::int[]", "id, not_before, lane, budget_attempt, interruptions, expiries")} d
    where l.ctid = d.place
   returning l.tenant_id, l.class)
   ${countRetries("retrying", "$7")}`,
);

/**
 * Writes departures: history, attempts, dead letters, effects, live rows, guards handed on, intents, word to schedules,
 * and last of all the running counts, whose rows everybody wants. Answers the new outbox rows.
 */
export async function depart(tx: Transaction, departures: readonly Departure[], nowAt: Instant): Promise<OutboxRow[]> {
  if (departures.length === 0) return [];
  const ends = departures.filter((one) => one.kind === "end");
  const retries = departures.filter((one) => one.kind === "retry");

  await endRuns(tx, ends.map(toEnding), nowAt);
  await closeAttempts(tx, departures.flatMap(toAttemptEnd), nowAt);
  await insertDeadLetters(tx, ends.flatMap(toDeadLetter), nowAt);
  await insertEffects(
    tx,
    ends.flatMap((one) => one.effects ?? []),
    nowAt,
  );
  const intents = [
    ...(await retryLater(tx, retries, nowAt)),
    ...(await handOn(tx, slotsHeldBy(ends.filter((one) => !isPausing(one)).map((one) => one.run)), nowAt)),
  ];
  await tellEnds(tx, ends, nowAt);

  const running = departures.map((one) => one.run).filter((run) => run.state === "running");
  await addUsage(tx, countLanes(running, -1));
  return intents;
}

async function retryLater(
  tx: Transaction,
  retries: readonly Extract<Departure, { kind: "retry" }>[],
  nowAt: Instant,
): Promise<OutboxRow[]> {
  if (retries.length === 0) return [];
  await tx.query(TO_RETRYING, [
    retries.map((one) => one.run.id),
    retries.map((one) => one.notBefore),
    retries.map((one) => laneOfRetry(one.run)),
    retries.map((one) => one.run.budget_attempt + (one.spends === "retry" ? 1 : 0)),
    retries.map((one) => one.run.interruptions + (one.spends === "interruption" ? 1 : 0)),
    retries.map(expiriesInARow),
    instantText(nowAt),
  ]);
  return insertIntents(
    tx,
    retries.map((one) => ({
      tenantId: one.run.tenant_id,
      class: one.run.class,
      lane: laneOfRetry(one.run),
      availableAt: one.notBefore,
      runs: [one.run.id],
      published: false,
    })),
    nowAt,
  );
}

/** What costs nothing counts for nothing: an amnesty neither adds to a crash loop nor ends one. */
function expiriesInARow(one: Extract<Departure, { kind: "retry" }>): number {
  if (one.spends === "nothing") return one.run.expiries;
  return one.expired ? one.run.expiries + 1 : 0;
}

/** A run keeps its lane over its first few tries; a run that keeps failing goes behind work that is on time. */
function laneOfRetry(run: LiveRun): Lane {
  return run.budget_attempt >= 2 ? LANES.late : run.lane;
}

function toEnding(one: Extract<Departure, { kind: "end" }>): Ending {
  const { run } = one;
  return {
    id: run.id,
    scheduledAt: run.scheduled_at,
    state: one.state,
    attempts: run.attempt,
    startedAt: run.started_at,
    acceptedFence: one.state === "succeeded" ? run.fence : null,
    skipReason: one.skipReason ?? null,
    cancelRequestedAt: run.cancel_requested_at,
    error: one.failure === undefined ? null : { code: one.failure.code, message: one.failure.message },
    result: one.result ?? null,
  };
}

function toAttemptEnd(one: Departure): AttemptEnd[] {
  if (one.attempt === undefined) return [];
  const { run, failure } = one;
  const error = failure === undefined ? null : { code: failure.code, message: failure.message };
  return [{ runId: run.id, scheduledAt: run.scheduled_at, n: run.attempt, outcome: one.attempt, error }];
}

function toDeadLetter(one: Extract<Departure, { kind: "end" }>): DeadLetter[] {
  if (one.deadLetterReason === undefined) return [];
  const { run, failure } = one;
  return [
    {
      runId: run.id,
      scheduledAt: run.scheduled_at,
      tenantId: run.tenant_id,
      scheduleId: run.schedule_id,
      class: run.class,
      reason: one.deadLetterReason,
      fingerprint: fingerprintOf(failure?.code ?? one.deadLetterReason, failure?.message ?? ""),
      attempts: run.attempt,
      code: failure?.code ?? null,
      message: failure?.message ?? "",
    },
  ];
}

import {
  type Completion,
  type CompletionOutcome,
  type CompletionView,
  decideCompletion,
} from "../../domain/completion.ts";
import type { Instant } from "../../kernel/clock.ts";
import { instantOf, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../../store/database.ts";
import { lockObjects, type ObjectRow, referenceObjects } from "../../store/rows/objects/objects.ts";
import { lockRunning } from "../../store/rows/runs/live-runs.ts";
import type { Authority } from "../authority.ts";
import { type AcceptedRun, effectIntentsOf } from "../effects/intents.ts";
import { type Departure, depart } from "./depart.ts";
import { isTold } from "./tell-ends.ts";

const READ_ENDED = sql(
  "complete_read_ended",
  `select r.id, r.state, r.accepted_fence, r.result_sha256
     from unnest($1::timestamptz[], $2::uuid[]) as k (scheduled_at, id)
     join run r on r.scheduled_at = k.scheduled_at and r.id = k.id`,
);

type EndedRow = { id: Uuid; state: string; accepted_fence: bigint | null; result_sha256: string | null };

/**
 * Publishes attempts' outputs as their runs' canonical results.
 * Locks   live runs (those that run have a guard: one round), staged objects; then the oldest blocked siblings, then usage.
 * Time    authority time, read after the live runs and objects are locked: nobody can take the fence away any more.
 * Writes  run, live_run, object, effect, usage, outbox (the oldest blocked sibling).
 * Replay  same attempt and checksum: `already-accepted`, nothing written.
 */
export async function completeRuns(
  authority: Authority,
  completions: readonly Completion[],
): Promise<readonly CompletionOutcome[]> {
  const ended: { class: string }[] = [];
  const outcomes = await authority.transact("complete", async (tx) => {
    ended.length = 0;
    const ids = [...new Set(completions.map((one) => one.runId))];
    const live = await lockRunning(tx, ids);
    const gone = await readEnded(
      tx,
      ids.filter((id) => !live.has(id)),
    );
    const objects = await lockObjects(
      tx,
      completions.flatMap((one) => (one.output === null ? [] : [one.output.objectId])),
    );
    await authority.faults.reach("complete:locked");
    const nowAt = await tx.authorityNow();

    const departures: Extract<Departure, { kind: "end" }>[] = [];
    const referenced: ObjectRow[] = [];
    const withEffects: AcceptedRun[] = [];
    const decided = completions.map((claim) => {
      const object = claim.output === null ? undefined : objects.get(claim.output.objectId);
      const outcome = decideCompletion(claim, viewOf(live.get(claim.runId), gone.get(claim.runId), object), nowAt);
      if (outcome.kind === "accepted") {
        const run = live.get(claim.runId)!;
        departures.push({ kind: "end", run, state: "succeeded", result: resultOf(object) });
        if (object !== undefined) referenced.push(object);
        if (run.has_effects) withEffects.push({ runId: run.id, object });
        ended.push({ class: run.class });
        // A second completion of this run in the same batch meets the first one's answer.
        live.delete(claim.runId);
        const sha256 = claim.output?.sha256 ?? null;
        gone.set(claim.runId, {
          id: claim.runId,
          state: "succeeded",
          accepted_fence: claim.fence,
          result_sha256: sha256,
        });
      }
      return outcome;
    });
    await referenceObjects(
      tx,
      referenced.map((object) => object.id),
      nowAt,
    );
    const effects = await effectIntentsOf(authority, tx, withEffects, nowAt);
    const byRun = Map.groupBy(effects, (effect) => effect.run_id);
    const intents = await depart(
      tx,
      effects.length === 0 ? departures : departures.map((one) => ({ ...one, effects: byRun.get(one.run.id) ?? [] })),
      nowAt,
    );
    await authority.faults.reach("complete:written");
    const told = departures.some(isTold);
    return { decided, intents, nowAt, told, effects: effects.length };
  });

  for (const [class_, runs] of Map.groupBy(ended, (run) => run.class)) {
    authority.metrics.runsEnded.inc({ class: class_, state: "succeeded" }, runs.length);
  }
  for (const outcome of outcomes.decided) {
    if (outcome.kind === "stale-fence") authority.metrics.staleCompletions.inc({ verb: "complete" });
  }
  if (outcomes.intents.length > 0) authority.signals.outboxGrew(outcomes.nowAt);
  if (outcomes.told) authority.signals.scheduleMoved(outcomes.nowAt);
  if (outcomes.effects > 0) authority.signals.effectsDue();
  if (ended.length > 0) authority.signals.slotsFreed();
  return outcomes.decided;
}

async function readEnded(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, EndedRow>> {
  if (ids.length === 0) return new Map();
  const rows = await tx.query<EndedRow>(READ_ENDED, [ids.map(instantOf), ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

function viewOf(
  live: { state: string; fence: bigint | null; lease_until: Instant | null } | undefined,
  ended: EndedRow | undefined,
  object: ObjectRow | undefined,
): CompletionView {
  return {
    live: live && { state: live.state, fence: live.fence, leaseUntil: live.lease_until },
    ended: ended && { state: ended.state, acceptedFence: ended.accepted_fence, sha256: ended.result_sha256 },
    object: object && {
      state: object.state,
      runId: object.run_id,
      fence: object.fence,
      sha256: object.sha256,
      grantedUntil: object.granted_until,
    },
  };
}

function resultOf(object: ObjectRow | undefined) {
  if (object === undefined) return null;
  const { id, uri, version, sha256, size, media_type } = object;
  return { objectId: id, uri, version, sha256: sha256!, size: size!, mediaType: media_type };
}

import { pauseNote } from "../../domain/planning/pause-note.ts";
import { type Following, failureThatPauses, nextAfterEnds, type ToldEnd } from "../../domain/planning/told-ends.ts";
import type { Instant } from "../../kernel/clock.ts";
import { showId, type Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import {
  type CursorRow,
  type DueLook,
  leftOut,
  lockCursorsSkipping,
  setScheduleStatus,
} from "../../store/rows/cursors.ts";
import { findWithOpenRuns } from "../../store/rows/runs/live-runs.ts";
import { readRecordedStates } from "../../store/rows/runs/run-state.ts";
import { lockSchedules, type ScheduleRow, updateSchedule } from "../../store/rows/schedules.ts";
import { fillFreeGuards, holdWaiting } from "../attempts/waiting.ts";
import type { Authority } from "../authority.ts";
import { revisionOf } from "../revisions.ts";
import { dueAtOf } from "../schedules/next-instant.ts";

const WORD = "kind = 'schedule' and published_at is null";
const FIND_TOLD = sql(
  "hear_ends_find",
  `select schedule_id from outbox
    where ${WORD} and (get_bit($1::bit(1024), bucket_of(schedule_id)) = 1
                       or available_at < (select clock_timestamp()) - interval '2 seconds')
      and ${leftOut("$3")}
    group by schedule_id order by min(available_at) limit $2`,
);
// Whatever the batch, all words are walked: no index holds their schedules. "is true" has the ids hashed, where any() would
// compare each word with each of them (measured: 12 ms against 125 ms for 8,000 words and 1,000 ids).
const READ_TOLD = sql(
  "hear_ends_read",
  `select id, schedule_id from outbox where ${WORD} and (schedule_id in (select unnest($1::uuid[]))) is true`,
);
const TAKE = sql(
  "hear_ends_take",
  `delete from outbox where id = any($1::bigint[])
   returning schedule_id, runs[1] as run_id, available_at as ended_at`,
);
const FOLLOW = sql(
  "hear_ends_follow",
  `update schedule_cursor c set next_run_at = f.next_run_at, next_due_at = f.next_due_at, awaits_end = false
     from unnest($1::uuid[], $2::timestamptz[], $3::timestamptz[]) as f (schedule_id, next_run_at, next_due_at)
    where c.schedule_id = f.schedule_id`,
);
/** As a pause does: nothing is due, no catch-up is under way, and no fault is tried again; one that hides the next instant is kept. */
const STOP = sql(
  "hear_ends_stop",
  `update schedule_cursor
      set next_due_at = null, catch_up_until = null, caught_up = 0, catch_up_reason = null,
          fault = case when next_run_at is null then fault end, fault_retry_at = null
    where schedule_id = $1`,
);

/** Schedules that have been told of an end and have not heard of it yet: own buckets, and anybody's that have waited long. */
export async function findToldSchedules(authority: Authority, { mask, limit, except }: DueLook): Promise<Uuid[]> {
  const rows = await authority.db.query<{ schedule_id: Uuid }>(FIND_TOLD, [mask, limit, except]);
  return rows.map((row) => row.schedule_id);
}

type Told = { schedule_id: Uuid; run_id: Uuid; ended_at: Instant };

/**
 * Takes up what schedules whose cursors are locked have been told of their runs' ends, before anything else is settled:
 * a failure pauses (pauseOnFailure), an end brings the next instant (afterCompletion). Answers the cursors as they stand
 * then, and how many ends there were.
 * Locks   the schedules that were told, then the blocked runs of those that are paused; no run that anybody runs.
 * Writes  outbox, schedule, schedule_cursor, live_run (what is held), audit_event.
 */
export async function hearEnds(
  authority: Authority,
  tx: Transaction,
  locked: readonly CursorRow[],
): Promise<{ cursors: readonly CursorRow[]; heard: number }> {
  const told = await tx.query<{ id: bigint; schedule_id: Uuid }>(READ_TOLD, [
    locked.map((cursor) => cursor.schedule_id),
  ]);
  if (told.length === 0) return { cursors: locked, heard: 0 };
  const ids = [...new Set(told.map((row) => row.schedule_id))].sort();
  const schedules = await lockSchedules(tx, ids);
  const words = await tx.query<Told>(TAKE, [told.map((row) => row.id)]);
  const recorded = await readRecordedStates(
    tx,
    words.map((word) => word.run_id),
  );
  const open = await findWithOpenRuns(tx, ids);
  const nowAt = await tx.authorityNow();
  await authority.revisions.load(tx, locked.map(revisionOf));

  const known = new Map(locked.map((cursor) => [cursor.schedule_id, cursor]));
  const endsOf = Map.groupBy(words, (word) => word.schedule_id);
  const followed: Followed[] = [];
  for (const schedule of schedules) {
    const ends = (endsOf.get(schedule.id) ?? []).map((word) => ({
      runId: word.run_id,
      endedAt: word.ended_at,
      state: recorded.get(word.run_id)?.state,
    }));
    const hearer = { schedule, cursor: known.get(schedule.id)!, hasOpenRuns: open.has(schedule.id) };
    followed.push(await hear(authority, tx, hearer, ends, nowAt));
  }
  await follow(authority, tx, followed, nowAt);
  await authority.faults.reach("hear-ends:written");
  for (const cursor of await lockCursorsSkipping(tx, ids)) known.set(cursor.schedule_id, cursor);
  return { cursors: locked.map((cursor) => known.get(cursor.schedule_id)!), heard: words.length };
}

type Hearer = { schedule: ScheduleRow; cursor: CursorRow; hasOpenRuns: boolean };
/** What a schedule that has heard of ends is to do next, and in which status. */
type Followed = { cursor: CursorRow; status: ScheduleRow["status"]; following: Following };

async function hear(
  authority: Authority,
  tx: Transaction,
  { schedule, cursor, hasOpenRuns }: Hearer,
  ends: readonly ToldEnd[],
  nowAt: Instant,
): Promise<Followed> {
  if (schedule.status === "deleted") return { cursor, status: "deleted", following: { kind: "keep" } };
  const { definition } = authority.revisions.get(revisionOf(cursor));
  const failed = failureThatPauses(definition, ends);
  let status = schedule.status;
  if (failed === undefined) {
    // A failing run whose schedule does not mind any more, or that was opened again since, has handed nothing on. Also in
    // a pause: what was born before it goes on, but for what a failure holds.
    const mayWait = ends.some((end) => end.state === "failed" || end.state === "open");
    if (mayWait) await fillFreeGuards(tx, schedule.id, definition.overlap, nowAt);
  } else {
    const held = await holdWaiting(tx, schedule.id);
    // A finished schedule has nothing to pause but what waits.
    if (status === "active" || held > 0) {
      status = "paused";
      await pause(tx, schedule, failed, nowAt);
    }
  }
  const view = { status, hasOpenRuns, lastNominalAt: cursor.last_nominal_at };
  return { cursor, status, following: nextAfterEnds(definition, ends, view) };
}

async function pause(tx: Transaction, schedule: ScheduleRow, failed: Uuid, nowAt: Instant): Promise<void> {
  const { id: scheduleId, tenant_id: tenantId, status } = schedule;
  if (status === "paused") return;
  const notes = pauseNote(showId("run", failed));
  await updateSchedule(tx, { ...schedule, status: "paused", notes }, nowAt);
  await tx.query(STOP, [scheduleId]);
  const after = { note: notes, run: failed };
  await writeAudit(tx, { tenantId, actor: "punctual", action: "schedule.pause", subject: scheduleId, after });
}

async function follow(
  authority: Authority,
  tx: Transaction,
  followed: readonly Followed[],
  nowAt: Instant,
): Promise<void> {
  const moved = followed.flatMap(({ cursor, status, following }) => {
    if (following.kind === "keep") return [];
    const { definition } = authority.revisions.get(revisionOf(cursor));
    const nextRunAt = following.kind === "at" ? following.nextRunAt : null;
    const nextDueAt = status === "active" ? dueAtOf(authority, cursor.schedule_id, definition, nextRunAt) : null;
    return [{ scheduleId: cursor.schedule_id, nextRunAt, nextDueAt }];
  });
  if (moved.length === 0) return;
  await tx.query(FOLLOW, [
    moved.map((one) => one.scheduleId),
    moved.map((one) => one.nextRunAt),
    moved.map((one) => one.nextDueAt),
  ]);
  const finished = moved.filter((one) => one.nextRunAt === null).map((one) => one.scheduleId);
  await setScheduleStatus(tx, finished, "finished", nowAt);
}

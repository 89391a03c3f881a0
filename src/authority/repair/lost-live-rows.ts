import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { lockCursor } from "../../store/rows/cursors.ts";
import { closeAttempts } from "../../store/rows/runs/endings.ts";
import { lockEveryRunOf } from "../../store/rows/runs/live-runs.ts";
import { instantText } from "../../store/values.ts";
import { fillFreeGuards } from "../attempts/waiting.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, transactOrRefuse } from "../refusal.ts";
import { revisionOf } from "../revisions.ts";
import { bringBack, type ReturningRun } from "../runs/bring-back.ts";

/** One stretch of history. No index holds the open runs: it would cost every birth and every end. */
const WALK = sql(
  "lost_live_walk",
  `with stretch as materialized (
     select scheduled_at, id, schedule_id, state from run
      where scheduled_at >= $1 and (scheduled_at, id) > ($1, $2::uuid) order by scheduled_at, id limit $3)
   select s.scheduled_at, s.id, s.schedule_id,
          s.state = 'open' and not exists (select from live_run l where l.id = s.id) as lost
     from stretch s
    where s.state = 'open' or (s.scheduled_at, s.id) = (select scheduled_at, id from stretch order by 1 desc, 2 desc limit 1)
    order by s.scheduled_at, s.id`,
);
const READ_LOST = sql(
  "lost_live_read",
  `select r.id, r.scheduled_at, r.schedule_id, r.tenant_id, r.class, r.revision, v.content, r.trigger, r.due_at,
          r.job is not null or r.payload is not null as own_work,
          coalesce(jsonb_array_length(r.job -> 'effects'), 0) > 0 as own_effects,
          (select coalesce(max(n), 0) from attempt a where a.scheduled_at = r.scheduled_at and a.run_id = r.id) as attempts,
          (select min(started_at) from attempt a where a.scheduled_at = r.scheduled_at and a.run_id = r.id) as started_at
     from run r left join schedule_revision v on v.schedule_id = r.schedule_id and v.revision = r.revision
    where r.scheduled_at = $1 and r.id = $2 and r.state = 'open'
      and not exists (select from live_run l where l.id = r.id)
      for update of r`,
);

type Stretched = { scheduled_at: Instant; id: Uuid; schedule_id: Uuid | null; lost: boolean };

/** How far this process has walked over history. At its end it begins anew. */
export type HistoryWalk = { after: { scheduled_at: Instant; id: Uuid } };

const BEGINNING = { scheduled_at: 0, id: NIL_ID };

export function fromTheBeginning(): HistoryWalk {
  return { after: BEGINNING };
}

/**
 * Gives open runs without a live row a new one, in the next `stretch` runs of history: they would stand open for ever. Each
 * waits its turn, as after a replay, and its next attempt is numbered on; what an attempt may still do, the next fence
 * refuses.
 * Locks   the cursor, then every open run of the schedule (two rounds), then the run.
 * Writes  live_run, attempt, outbox. Replay: nothing.
 */
export async function restoreLostLiveRows(authority: Authority, walk: HistoryWalk, stretch: number): Promise<number> {
  const values = [instantText(walk.after.scheduled_at), walk.after.id, stretch];
  const rows = await authority.db.query<Stretched>(WALK, values);
  let restored = 0;
  for (const run of rows) if (run.lost) restored += await restoreOne(authority, run);
  walk.after = rows.at(-1) ?? BEGINNING;
  authority.metrics.repairs.inc({ kind: "lost-live-row" }, restored);
  if (restored > 0) authority.signals.outboxGrew(0);
  return restored;
}

function restoreOne(authority: Authority, { id, scheduled_at, schedule_id }: Stretched): Promise<number> {
  return transactOrRefuse(authority, "restore-live", async (tx) => {
    const cursor = schedule_id === null ? undefined : await lockCursor(tx, schedule_id);
    if (schedule_id !== null && (await lockEveryRunOf(tx, schedule_id)) === undefined) lookAgain();
    const [run] = await tx.query<ReturningRun>(READ_LOST, [instantText(scheduled_at), id]);
    if (run === undefined) return 0;
    const nowAt = await tx.authorityNow();
    await closeAttempts(tx, leftOpen(run), nowAt);
    const cursors = new Map(cursor === undefined ? [] : [[cursor.schedule_id, cursor]]);
    await bringBack(authority, tx, [{ run, guard: schedule_id === null ? id : null }], cursors, nowAt);
    if (cursor !== undefined) {
      const { overlap } = authority.revisions.get(revisionOf(cursor)).definition;
      await fillFreeGuards(tx, cursor.schedule_id, overlap, nowAt);
    }
    return 1;
  });
}

function leftOpen(run: ReturningRun) {
  const error = { code: "live-row-lost", message: "the record of where the run stood was lost" };
  const { id: runId, scheduled_at: scheduledAt, attempts: n } = run;
  return n === 0 ? [] : [{ runId, scheduledAt, n, outcome: "expired" as const, error }];
}

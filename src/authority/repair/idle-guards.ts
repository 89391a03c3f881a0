import { slotsOf } from "../../domain/guard.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { sql, type Transaction } from "../../store/database.ts";
import { lockCursor } from "../../store/rows/cursors.ts";
import { lockEveryRunOf } from "../../store/rows/runs/live-runs.ts";
import { fillFreeGuards } from "../attempts/waiting.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, transactOrRefuse } from "../refusal.ts";
import { type RevisionKey, revisionOf } from "../revisions.ts";

const FIND = sql(
  "idle_guards_find",
  `select l.schedule_id as "scheduleId", c.revision, c.content, count(*) filter (where l.guard <> l.id)::int as holders
     from live_run l join schedule_cursor c on c.schedule_id = l.schedule_id
    where l.held_by <> 'pause'
    group by l.schedule_id, c.revision, c.content
   having bool_or(l.guard is null)
    limit $1`,
);

const FIND_WORD = sql(
  "idle_guards_find_word",
  "select 1 from outbox where kind = 'schedule' and published_at is null and schedule_id = $1 limit 1",
);

/** A failure that pauses the schedule has handed nothing on, and the schedule has not heard of it yet. */
async function hasWord(tx: Transaction, scheduleId: Uuid): Promise<boolean> {
  return (await tx.query(FIND_WORD, [scheduleId])).length > 0;
}

/** `holders` of slots: a holder of its own id is surplus from an edit, or competes with nobody. */
type Candidate = RevisionKey & { holders: number };

/**
 * Gives guards that nobody holds to the runs that wait for them: a blocked run behind no holder would block its
 * schedule for ever.
 * Locks   the cursor, then every open run of the schedule (two rounds), as an edit does.
 * Writes  live_run (guard), outbox. Replay: nothing.
 */
export async function fillIdleGuards(authority: Authority, limit: number): Promise<number> {
  const candidates = await authority.db.query<Candidate>(FIND, [limit]);
  await authority.revisions.load(authority.db, candidates);
  let filled = 0;
  for (const candidate of candidates) {
    const { overlap } = authority.revisions.get(candidate).definition;
    if (candidate.holders < slotsOf(overlap)) filled += await fillOne(authority, candidate.scheduleId);
  }
  authority.metrics.repairs.inc({ kind: "idle-guard" }, filled);
  if (filled > 0) authority.signals.outboxGrew(0);
  return filled;
}

function fillOne(authority: Authority, scheduleId: Uuid): Promise<number> {
  return transactOrRefuse(authority, "fill-guards", async (tx) => {
    const cursor = await lockCursor(tx, scheduleId);
    if (cursor === undefined) return 0;
    if ((await lockEveryRunOf(tx, scheduleId)) === undefined) lookAgain();
    // After the locks: nobody ends now, and who has ended before has left word.
    if (await hasWord(tx, scheduleId)) return 0;
    await authority.revisions.load(tx, [revisionOf(cursor)]);
    const { overlap } = authority.revisions.get(revisionOf(cursor)).definition;
    return (await fillFreeGuards(tx, scheduleId, overlap, await tx.authorityNow())).length;
  });
}

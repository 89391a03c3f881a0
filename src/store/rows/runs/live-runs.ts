import type { Fence } from "../../../domain/fence.ts";
import type { Concern, OpenRun } from "../../../domain/overlap.ts";
import type { HeldBy, Lane, LiveState } from "../../../domain/states.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** An open run as its live_run row has it. */
export type LiveRun = {
  id: Uuid;
  scheduled_at: Instant;
  schedule_id: Uuid | null;
  tenant_id: Uuid;
  class: string;
  lane: Lane;
  revision: number | null;
  content: Uuid | null;
  state: LiveState;
  guard: Uuid | null;
  not_before: Instant;
  due_at: Instant;
  admitted_at: Instant;
  started_at: Instant | null;
  start_deadline: Instant | null;
  attempt: number;
  budget_from: Instant;
  budget_attempt: number;
  interruptions: number;
  expiries: number;
  held_by: HeldBy;
  fence: Fence | null;
  claim_id: Uuid | null;
  worker: string | null;
  lease_until: Instant | null;
  deadline_at: Instant | null;
  cancel_requested_at: Instant | null;
  own_work: boolean;
  /** Its schedule hears of its end. */
  tells_end: boolean;
  /** If it fails, its schedule hears of it and is paused. */
  pauses_on_failure: boolean;
  /** Its success has effects outside. */
  has_effects: boolean;
};

/** As much of it as an overlap policy decides by. */
export function openRunOf(run: LiveRun): OpenRun {
  return { id: run.id, scheduledAt: run.scheduled_at, state: run.state, guard: run.guard, heldBy: run.held_by };
}

export const LIVE_COLUMNS = `id, scheduled_at, schedule_id, tenant_id, class, lane, revision, content, state, guard, not_before, due_at,
  admitted_at, started_at, start_deadline, attempt, budget_from, budget_attempt, interruptions, expiries, held_by,
  fence, claim_id, worker, lease_until, deadline_at, cancel_requested_at, own_work, tells_end, pauses_on_failure, has_effects`;

const LOCK_GUARDED = sql(
  "live_lock_guarded",
  `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[]) and guard is not null order by id for update`,
);
const LOCK_UNGUARDED = sql(
  "live_lock_unguarded",
  `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[]) and guard is null
    order by schedule_id, scheduled_at, id for update`,
);
const LOCK_SKIPPING = sql(
  "live_lock_skipping",
  `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[]) order by id for update skip locked`,
);
const LOCK_HOLDERS_SKIPPING = sql(
  "live_lock_holders",
  `select id from live_run where schedule_id = any($1::uuid[]) and guard is not null order by id for update skip locked`,
);
const LOCK_WAITING_SKIPPING = sql(
  "live_lock_waiting",
  `select id from live_run where schedule_id = any($1::uuid[]) and guard is null
    order by schedule_id, scheduled_at, id for update skip locked`,
);
/** Holders of $1, all that wait in $2, and one that waits (there may be very many) in $3. */
const READ_OPEN = sql(
  "live_read_open",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = any($1::uuid[]) and guard is not null
   union all
   select ${LIVE_COLUMNS} from live_run where schedule_id = any($2::uuid[]) and guard is null
   union all
   select b.* from unnest($3::uuid[]) as s (of_schedule)
    cross join lateral (
      select ${LIVE_COLUMNS} from live_run where schedule_id = s.of_schedule and guard is null limit 1) b`,
);
const FIND_WITH_OPEN = sql(
  "live_find_with_open",
  `select s.id from unnest($1::uuid[]) as s (id)
    cross join lateral (select from live_run where schedule_id = s.id limit 1) l`,
);
const READ = sql("live_read", `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[])`);

/** What the end of a run needs to know of it. */
export type EndingRun = Pick<
  LiveRun,
  | "id"
  | "scheduled_at"
  | "schedule_id"
  | "tenant_id"
  | "class"
  | "state"
  | "guard"
  | "attempt"
  | "started_at"
  | "fence"
  | "lease_until"
  | "cancel_requested_at"
  | "tells_end"
  | "pauses_on_failure"
  | "has_effects"
>;

const ENDING_COLUMNS = `id, scheduled_at, schedule_id, tenant_id, class, state, guard, attempt, started_at, fence, lease_until,
  cancel_requested_at, tells_end, pauses_on_failure, has_effects`;

const LOCK_RUNNING = sql(
  "live_lock_running",
  `select ${ENDING_COLUMNS} from live_run where id = any($1::uuid[]) and guard is not null order by id for update`,
);

/** What a claim needs to know of a run: whether it may start, what it is to do, and, where it ends there, its end. */
export type ClaimableRun = EndingRun &
  Pick<
    LiveRun,
    | "revision"
    | "content"
    | "not_before"
    | "due_at"
    | "admitted_at"
    | "start_deadline"
    | "held_by"
    | "deadline_at"
    | "own_work"
  >;

const LOCK_CLAIMABLE = sql(
  "live_lock_claimable",
  `select ${ENDING_COLUMNS}, revision, content, not_before, due_at, admitted_at, start_deadline, held_by, deadline_at,
          own_work
     from live_run where id = any($1::uuid[]) order by id for update skip locked`,
);

/** Locks those runs of a claim that nobody else holds. What is missing is locked or gone: `readLiveRuns` tells which. */
export async function lockClaimable(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, ClaimableRun>> {
  return new Map((await tx.query<ClaimableRun>(LOCK_CLAIMABLE, [ids])).map((row) => [row.id, row]));
}

/** Locks rows that are running, if they are there at all, waiting: they have a guard, so the first round finds them. */
export async function lockRunning(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, EndingRun>> {
  return new Map((await tx.query<EndingRun>(LOCK_RUNNING, [ids])).map((row) => [row.id, row]));
}

/**
 * Locks live rows by id, waiting, in the two rounds of the lock order: rows with a guard by id, then rows without by
 * (schedule, instant, id). A row that changed class between the rounds shows up in neither; the caller sees it missing
 * and, where that matters, asks again in a new transaction.
 */
export async function lockLiveRuns(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, LiveRun>> {
  const key = [ids];
  const guarded = await tx.query<LiveRun>(LOCK_GUARDED, key);
  const found = new Map(guarded.map((row) => [row.id, row]));
  if (found.size < ids.length) {
    for (const row of await tx.query<LiveRun>(LOCK_UNGUARDED, key)) found.set(row.id, row);
  }
  return found;
}

const LOCK_BLOCKED_BESIDE = sql(
  "live_lock_blocked_beside",
  `select ${LIVE_COLUMNS} from live_run
    where (id = any($1::uuid[]) or schedule_id = any($2::uuid[])) and guard is null
    order by schedule_id, scheduled_at, id for update skip locked`,
);
const READ_BESIDE = sql(
  "live_read_beside",
  "select id from live_run where id = any($1::uuid[]) or (schedule_id = any($2::uuid[]) and guard is null)",
);
const AWAIT = sql("live_await", "select from live_run where id = $1 for update");

/**
 * The same two rounds for who ends waiting runs: the second also takes the blocked runs of every schedule in which a
 * guard is about to be handed on. Locked later, they would come out of order: two callers, each holding the other's
 * next sibling, would wait for ever.
 *
 * Answers with one that the second round could not have, where there is such. It does not wait while the first one's
 * rows are held: a run that was handed its guard just now is a row of the first round to whoever comes, and may be held by
 * one who waits for us.
 */
export async function lockLiveRunsAndSiblings(
  tx: Queryable,
  ids: readonly Uuid[],
): Promise<Map<Uuid, LiveRun> | { missed: Uuid }> {
  const guarded = await tx.query<LiveRun>(LOCK_GUARDED, [ids]);
  const found = new Map(guarded.map((row) => [row.id, row]));
  const wanted = ids.filter((id) => !found.has(id));
  const ending = guarded.filter((row) => row.state !== "running" && row.schedule_id !== null);
  // Alone, no order can be wrong: the ordinary cancel of one run locks no more than it needs.
  if (wanted.length === 0) return found;
  const key = [wanted, ending.map((row) => row.schedule_id)];
  const beside = await tx.query<LiveRun>(LOCK_BLOCKED_BESIDE, key);
  const locked = new Set(beside.map((row) => row.id));
  const missed = (await tx.query<{ id: Uuid }>(READ_BESIDE, key)).find((row) => !locked.has(row.id));
  if (missed !== undefined) return { missed: missed.id };
  const asked = new Set(wanted);
  for (const row of beside) if (asked.has(row.id)) found.set(row.id, row);
  return found;
}

/** Waits until nobody else holds this run, or it is gone. For a transaction that holds nothing else. */
export async function awaitLiveRun(tx: Queryable, id: Uuid): Promise<void> {
  await tx.query(AWAIT, [id]);
}

/** Locks those live rows that nobody else holds. What is missing is locked or gone: `readLiveRuns` tells which. */
export async function lockLiveRunsSkipping(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, LiveRun>> {
  const rows = await tx.query<LiveRun>(LOCK_SKIPPING, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

export async function readLiveRuns(db: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, LiveRun>> {
  const rows = await db.query<LiveRun>(READ, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Those of the schedules that have an open run. */
export async function findWithOpenRuns(tx: Queryable, scheduleIds: readonly Uuid[]): Promise<Set<Uuid>> {
  return new Set((await tx.query<{ id: Uuid }>(FIND_WITH_OPEN, [scheduleIds])).map((row) => row.id));
}

/**
 * The open runs of schedules whose cursors are locked, as far as their policies decide by them: holders are locked,
 * and so is all that waits where a newer run may replace it. Nothing visible is nothing to lock: only a verb that holds
 * the cursor makes a holder. Where something is visible, first lock what can be locked, then only a later read decides.
 * A run that is visible but not locked by us is moving in another transaction, or a stranger holds it: that schedule
 * cannot be decided now (`undecided`), and holds up nobody else.
 */
export async function lockOpenRunsOf(
  tx: Queryable,
  schedules: readonly { scheduleId: Uuid; concern: Concern }[],
): Promise<{ open: Map<Uuid, LiveRun[]>; undecided: Set<Uuid> }> {
  const open = new Map<Uuid, LiveRun[]>();
  const undecided = new Set<Uuid>();
  const concerned = schedules.filter((one) => one.concern !== "none");
  if (concerned.length === 0) return { open, undecided };
  const busy = await findWithOpenRuns(
    tx,
    concerned.map((one) => one.scheduleId),
  );
  if (busy.size === 0) return { open, undecided };
  const ids = [...busy];
  const every = new Set(
    concerned.filter((one) => one.concern === "every" && busy.has(one.scheduleId)).map((one) => one.scheduleId),
  );
  const locked = new Set((await tx.query<{ id: Uuid }>(LOCK_HOLDERS_SKIPPING, [ids])).map((row) => row.id));
  if (every.size > 0) {
    for (const row of await tx.query<{ id: Uuid }>(LOCK_WAITING_SKIPPING, [[...every]])) locked.add(row.id);
  }
  for (const row of await tx.query<LiveRun>(READ_OPEN, [ids, [...every], ids.filter((id) => !every.has(id))])) {
    const scheduleId = row.schedule_id!;
    const decides = row.guard !== null || every.has(scheduleId);
    if (decides && !locked.has(row.id)) undecided.add(scheduleId);
    const runs = open.get(scheduleId);
    if (runs === undefined) open.set(scheduleId, [row]);
    else runs.push(row);
  }
  return { open, undecided };
}

const LOCK_OF_SCHEDULE_GUARDED = sql(
  "live_lock_of_schedule_guarded",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = $1 and guard is not null order by id for update`,
);
const LOCK_OF_SCHEDULE_UNGUARDED = sql(
  "live_lock_of_schedule_unguarded",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = $1 and guard is null order by scheduled_at, id for update`,
);
const READ_OF_SCHEDULE = sql(
  "live_read_of_schedule",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = $1 order by scheduled_at, id`,
);

/**
 * Locks every open run of one schedule whose cursor is locked, waiting, in two rounds. Answers undefined where a
 * blocked run was handed its guard between the rounds: neither statement saw it, so a new transaction has to look.
 */
export async function lockEveryRunOf(tx: Queryable, scheduleId: Uuid): Promise<LiveRun[] | undefined> {
  const guarded = await tx.query<LiveRun>(LOCK_OF_SCHEDULE_GUARDED, [scheduleId]);
  const blocked = await tx.query<LiveRun>(LOCK_OF_SCHEDULE_UNGUARDED, [scheduleId]);
  const locked = new Set([...guarded, ...blocked].map((run) => run.id));
  const now = await tx.query<LiveRun>(READ_OF_SCHEDULE, [scheduleId]);
  return now.every((run) => locked.has(run.id)) ? now : undefined;
}

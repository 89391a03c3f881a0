import type { Fence } from "../../domain/fence.ts";
import type { HeldBy, Lane, LiveState } from "../../domain/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** An open run as its live_run row has it. */
export type LiveRun = {
  id: Uuid;
  scheduled_at: Instant;
  schedule_id: Uuid | null;
  tenant_id: Uuid;
  class: string;
  lane: Lane;
  revision: number | null;
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
};

export const LIVE_COLUMNS = `id, scheduled_at, schedule_id, tenant_id, class, lane, revision, state, guard, not_before, due_at,
  admitted_at, started_at, start_deadline, attempt, budget_from, budget_attempt, interruptions, expiries, held_by,
  fence, claim_id, worker, lease_until, deadline_at, cancel_requested_at, own_work`;

const LOCK_GUARDED = sql(
  "live_lock_guarded",
  `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[]) and guard is not null order by id for update`,
);
const LOCK_UNGUARDED = sql(
  "live_lock_unguarded",
  `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[]) and guard is null
    order by schedule_id, scheduled_at for update`,
);
const LOCK_SKIPPING = sql(
  "live_lock_skipping",
  `select ${LIVE_COLUMNS} from live_run where id = any($1::uuid[]) order by id for update skip locked`,
);
const LOCK_HOLDERS_SKIPPING = sql(
  "live_lock_holders",
  `select id from live_run where schedule_id = any($1::uuid[]) and guard is not null order by id for update skip locked`,
);
const READ_OF_SCHEDULES = sql(
  "live_read_of_schedules",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = any($1::uuid[]) order by schedule_id, scheduled_at`,
);
const LOCK_WAITING = sql(
  "live_lock_waiting",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = any($1::uuid[]) and guard is null
    order by schedule_id, scheduled_at for update`,
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
>;

const LOCK_RUNNING = sql(
  "live_lock_running",
  `select id, scheduled_at, schedule_id, tenant_id, class, state, guard, attempt, started_at, fence, lease_until,
          cancel_requested_at
     from live_run where id = any($1::uuid[]) and guard is not null order by id for update`,
);

/** Locks rows that are running, if they are there at all, waiting: they have a guard, so the first round finds them. */
export async function lockRunning(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, EndingRun>> {
  return new Map((await tx.query<EndingRun>(LOCK_RUNNING, [ids])).map((row) => [row.id, row]));
}

/**
 * Locks live rows by id, waiting, in the two rounds of the lock order: rows with a guard by id, then rows without by
 * (schedule, instant). A row that changed class between the rounds shows up in neither; the caller sees it missing
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
    order by schedule_id, scheduled_at for update`,
);

/**
 * The same two rounds for who ends waiting runs: the second also takes the blocked runs of every schedule in which a
 * guard is about to be handed on. Locked later, they would come out of order: two callers, each holding the other's
 * next sibling, would wait for ever.
 */
export async function lockLiveRunsAndSiblings(tx: Queryable, ids: readonly Uuid[]): Promise<Map<Uuid, LiveRun>> {
  const guarded = await tx.query<LiveRun>(LOCK_GUARDED, [ids]);
  const found = new Map(guarded.map((row) => [row.id, row]));
  const wanted = ids.filter((id) => !found.has(id));
  const ending = guarded.filter((row) => row.state !== "running" && row.schedule_id !== null);
  // Alone, no order can be wrong: the ordinary cancel of one run locks no more than it needs.
  if (wanted.length === 0) return found;
  const schedules = ending.map((row) => row.schedule_id);
  const asked = new Set(wanted);
  for (const row of await tx.query<LiveRun>(LOCK_BLOCKED_BESIDE, [wanted, schedules])) {
    if (asked.has(row.id)) found.set(row.id, row);
  }
  return found;
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

/**
 * The open runs of schedules whose cursors are locked, with their holders locked too. Two statements on purpose: the
 * first locks what it can, only the second one decides. A holder that is visible but not locked by us is ending in
 * another transaction: that schedule cannot be decided now (`undecided`).
 */
export async function lockOpenRunsOf(
  tx: Queryable,
  scheduleIds: readonly Uuid[],
): Promise<{ open: Map<Uuid, LiveRun[]>; undecided: Set<Uuid> }> {
  const key = [scheduleIds];
  const locked = new Set((await tx.query<{ id: Uuid }>(LOCK_HOLDERS_SKIPPING, key)).map((row) => row.id));
  const open = new Map<Uuid, LiveRun[]>();
  const undecided = new Set<Uuid>();
  for (const row of await tx.query<LiveRun>(READ_OF_SCHEDULES, key)) {
    const scheduleId = row.schedule_id!;
    if (row.guard !== null && !locked.has(row.id)) undecided.add(scheduleId);
    const runs = open.get(scheduleId);
    if (runs === undefined) open.set(scheduleId, [row]);
    else runs.push(row);
  }
  return { open, undecided };
}

/** Locks the blocked runs of schedules, waiting: second round of the lock order. */
export async function lockWaitingRunsOf(tx: Queryable, scheduleIds: readonly Uuid[]): Promise<LiveRun[]> {
  return tx.query<LiveRun>(LOCK_WAITING, [scheduleIds]);
}

const LOCK_OF_SCHEDULE_GUARDED = sql(
  "live_lock_of_schedule_guarded",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = $1 and guard is not null order by id for update`,
);
const LOCK_OF_SCHEDULE_UNGUARDED = sql(
  "live_lock_of_schedule_unguarded",
  `select ${LIVE_COLUMNS} from live_run where schedule_id = $1 and guard is null order by scheduled_at for update`,
);

/**
 * Locks every open run of one schedule whose cursor is locked, waiting, in two rounds. Answers undefined where a
 * blocked run was handed its guard between the rounds: neither statement saw it, so a new transaction has to look.
 */
export async function lockEveryRunOf(tx: Queryable, scheduleId: Uuid): Promise<LiveRun[] | undefined> {
  const guarded = await tx.query<LiveRun>(LOCK_OF_SCHEDULE_GUARDED, [scheduleId]);
  const blocked = await tx.query<LiveRun>(LOCK_OF_SCHEDULE_UNGUARDED, [scheduleId]);
  const locked = new Set([...guarded, ...blocked].map((run) => run.id));
  const now = await tx.query<LiveRun>(READ_OF_SCHEDULES, [[scheduleId]]);
  return now.every((run) => locked.has(run.id)) ? now : undefined;
}

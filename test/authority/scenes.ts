import { failRuns } from "../../src/authority/attempts/fail.ts";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import type { Definition } from "../../src/domain/definition.ts";
import { deriveRunId, type Uuid } from "../../src/kernel/ids.ts";
import type { World } from "../support/world.ts";

/** Scenes that many stories begin with. Instants are told by how long ago they were: let them shrink within a test. */

export const MINUTE = 60_000;
export const EVERY_MINUTE = { kind: "cron", expression: "* * * * *", zone: "Etc/UTC" } as const;
/** Each day's first three minutes: for stories of a past day, during which none of today becomes due. */
export const AFTER_MIDNIGHT = { kind: "cron", expression: "0-2 0 * * *", zone: "Etc/UTC" } as const;

type Change = Parameters<World["newSchedule"]>[0];

/** Gives the schedule one more due instant and materialises it; answers the run's id (it may be a skip). */
export async function bear(world: World, scheduleId: Uuid, agoMs: number): Promise<Uuid> {
  const runId = await makeDue(world, scheduleId, agoMs);
  await world.materialize([scheduleId]);
  return runId;
}

/** The schedule is due; nobody has materialised it yet. Answers the id its run will have. */
export async function makeDue(world: World, scheduleId: Uuid, agoMs: number): Promise<Uuid> {
  return deriveRunId(scheduleId, "schedule", await world.makeDue(scheduleId, agoMs));
}

/** A schedule with one running run. */
export async function running(world: World, change: Change = {}): Promise<{ scheduleId: Uuid; grant: Grant }> {
  const scheduleId = await world.newSchedule(change);
  const runId = await bear(world, scheduleId, 60_000);
  return { scheduleId, grant: await start(world, runId) };
}

/** Claims the outbox rows that name this run. */
export async function start(world: World, runId: Uuid, worker = "worker-a"): Promise<Grant> {
  const { grants } = await world.claim(await hintsOf(world, runId), { worker });
  const grant = grants.find((one) => one.runId === runId);
  if (grant === undefined) throw new Error(`${runId} did not start`);
  return grant;
}

/** The attempt fails in a way that no retry would mend. */
export async function failForGood(world: World, { runId, fence }: Pick<Grant, "runId" | "fence">) {
  return failRuns(world.authority, [
    { runId, fence, failure: { transient: false, code: "broken", message: "no use" } },
  ]);
}

export async function hintsOf(world: World, runId: Uuid): Promise<bigint[]> {
  return (await world.outbox()).filter((row) => row.runs.includes(runId)).map((row) => row.id);
}

/** Where the run stands, as people see it. */
export async function stateOf(world: World, runId: Uuid): Promise<string | undefined> {
  const { rows } = await world.admin.query(
    "select coalesce(l.state, r.state) as state from run r left join live_run l on l.id = r.id where r.id = $1",
    [runId],
  );
  return rows[0]?.state;
}

export async function liveOf(world: World, runId: Uuid): Promise<Record<string, unknown> | undefined> {
  return (await world.admin.query("select * from live_run where id = $1", [runId])).rows[0];
}

/** The schedule's history in order: instant, state, and the reason of skips. */
export async function history(world: World, scheduleId: Uuid) {
  const { rows } = await world.admin.query(
    `select r.id, r.scheduled_at, coalesce(l.state, r.state) as state, r.skip_reason, r.revision, r.trigger
       from run r left join live_run l on l.id = r.id where r.schedule_id = $1 order by r.scheduled_at`,
    [scheduleId],
  );
  return rows as {
    id: Uuid;
    scheduled_at: Date;
    state: string;
    skip_reason: string | null;
    revision: number;
    trigger: string;
  }[];
}

export async function states(world: World, scheduleId: Uuid): Promise<string[]> {
  return (await history(world, scheduleId)).map((run) => run.state);
}

/** What was skipped as ranges, oldest first. */
export async function rangesOf(world: World, scheduleId: Uuid) {
  const { rows } = await world.admin.query(
    "select from_at, to_at, instants, reason from skip_range where schedule_id = $1 order by from_at",
    [scheduleId],
  );
  return rows as { from_at: Date; to_at: Date; instants: bigint | null; reason: string }[];
}

/**
 * A minutely schedule whose scanner has been away since `minutes` whole minutes ago, and comes back now. Answers the first
 * missed instant. Such stories count minutes: none begins in the last seconds of one.
 */
export async function away(world: World, minutes: number, change: Change = {}) {
  const scheduleId = await world.newSchedule({
    rule: EVERY_MINUTE,
    overlap: { policy: "allow" },
    misfire: { policy: "latest", graceMs: 0, maxCatchUp: 100 },
    ...change,
  } as never);
  const left = MINUTE - (Date.now() % MINUTE);
  if (left < 10_000) await world.passes(Date.now() + left + 50);
  const { rows } = await world.admin.query(
    `update schedule_cursor set next_run_at = at, next_due_at = at
       from (select date_trunc('minute', clock_timestamp()) - $2 * interval '1 minute' as at) moment
      where schedule_id = $1 returning next_run_at`,
    [scheduleId, minutes],
  );
  return { scheduleId, firstAt: (rows[0].next_run_at as Date).getTime() };
}

export function allow(limit?: number): Partial<Definition> {
  return { overlap: { policy: "allow", ...(limit === undefined ? {} : { limit }) } };
}

import { dismissLetter } from "../../../src/authority/dead-letters/dismiss.ts";
import { replayRun } from "../../../src/authority/dead-letters/replay.ts";
import { createLettersOperation } from "../../../src/authority/operations/dead-letters/create.ts";
import type { LetterFilter } from "../../../src/domain/dead-letters.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import type { World } from "../../support/world.ts";
import { bear, failForGood, start } from "../scenes.ts";

type Change = Parameters<World["newSchedule"]>[0];

/** A schedule whose one run was given up. */
export async function givenUp(world: World, change: Change = {}, agoMs = 60_000) {
  const scheduleId = await world.newSchedule(change);
  return { scheduleId, ...(await giveUp(world, scheduleId, agoMs)) };
}

/** One more run of the schedule, given up. */
export async function giveUp(world: World, scheduleId: Uuid, agoMs: number) {
  const runId = await bear(world, scheduleId, agoMs);
  const grant = await start(world, runId);
  await failForGood(world, grant);
  return { runId, grant };
}

export const replay = (world: World, runId: Uuid, authority = world.authority) =>
  replayRun(authority, { tenantId: world.tenantId, actor: "anna", runId, reason: "mended" });

export const dismiss = (world: World, runId: Uuid, authority = world.authority) =>
  dismissLetter(authority, { tenantId: world.tenantId, actor: "bert", runId, reason: "not worth it" });

/** Begins an operation on many letters; answers its id. */
export async function begin(
  world: World,
  kind: "replay" | "dismiss",
  filter: LetterFilter = {},
  pacePerSecond = 1_000,
): Promise<Uuid> {
  const request = { tenantId: world.tenantId, actor: "anna", reason: "mended", total: null };
  const made = await createLettersOperation(world.authority, { ...request, kind, filter, pacePerSecond });
  if (made.kind !== "created") throw new Error(`not created: ${JSON.stringify(made)}`);
  return made.operation.id;
}

export async function letterOf(world: World, runId: Uuid) {
  return (await world.admin.query("select * from dead_letter where run_id = $1", [runId])).rows[0];
}

export async function decisionsOf(world: World, runId: Uuid) {
  const { rows } = await world.admin.query("select * from dead_letter_resolution where run_id = $1 order by n", [
    runId,
  ]);
  return rows;
}

export async function attemptsOf(world: World, runId: Uuid) {
  const { rows } = await world.admin.query(
    "select n, fence, outcome, error_code, ended_at is not null as ended from attempt where run_id = $1 order by n",
    [runId],
  );
  return rows as { n: number; fence: bigint; outcome: string | null; error_code: string | null; ended: boolean }[];
}

export async function deadlocks(...authorities: readonly World["authority"][]): Promise<number> {
  let met = 0;
  for (const authority of authorities) {
    const { values } = await authority.metrics.verbFaults.get();
    met += values.filter((value) => value.labels.code === "40P01").length;
  }
  return met;
}

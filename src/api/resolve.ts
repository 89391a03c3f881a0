import { instantOf, readId, type Uuid } from "../kernel/ids.ts";
import { readFloor } from "../store/reads/floor.ts";
import { findRun, type RunView } from "../store/reads/runs.ts";
import { findSchedule, findScheduleByKey, type ScheduleView } from "../store/reads/schedules.ts";
import type { ApiContext, Caller } from "./context.ts";
import { Problem } from "./problems/problem.ts";

/** From what stands in a path to the thing itself. Another tenant's id is as unknown as one that never was. */

export async function getSchedule(context: ApiContext, caller: Caller, ref: string): Promise<ScheduleView> {
  const schedule = await findByRef(context, caller, ref);
  if (schedule === undefined) throw noSuchSchedule(ref);
  return schedule;
}

async function findByRef(context: ApiContext, caller: Caller, ref: string): Promise<ScheduleView | undefined> {
  if (ref.startsWith("key:")) return findScheduleByKey(context.db, caller.tenantId, ref.slice("key:".length));
  const id = readId("sch", ref);
  return id === undefined ? undefined : findSchedule(context.db, caller.tenantId, id);
}

export async function getScheduleId(context: ApiContext, caller: Caller, ref: string): Promise<Uuid> {
  if (ref.startsWith("key:")) return (await getSchedule(context, caller, ref)).id;
  const id = readId("sch", ref);
  if (id === undefined) throw noSuchSchedule(ref);
  return id;
}

export async function getRun(context: ApiContext, caller: Caller, ref: string): Promise<RunView> {
  const id = getRunId(ref);
  const run = await findRun(context.db, caller.tenantId, id);
  if (run !== undefined) return run;
  // Whose it was nobody knows any more; that it is too old is told by its id alone.
  if (instantOf(id) >= (await readFloor(context.db))) throw noSuchRun(ref);
  throw new Problem("history-removed", "The run, if there was one, is older than the history that is kept");
}

export function getRunId(ref: string): Uuid {
  const id = readId("run", ref);
  if (id === undefined) throw noSuchRun(ref);
  return id;
}

export function getOperationId(ref: string): Uuid {
  const id = readId("op", ref);
  if (id === undefined) throw noSuchOperation(ref);
  return id;
}

export function getEffectId(ref: string): Uuid {
  const id = readId("eff", ref);
  if (id === undefined) throw noSuchEffect(ref);
  return id;
}

export function noSuchEffect(ref: string): Problem {
  return new Problem("not-found", `There is no effect ${JSON.stringify(ref.slice(0, 100))}`);
}

export function noSuchOperation(ref: string): Problem {
  return new Problem("not-found", `There is no operation ${JSON.stringify(ref.slice(0, 100))}`);
}

export function noSuchSchedule(ref: string): Problem {
  return new Problem("not-found", `There is no schedule ${JSON.stringify(ref.slice(0, 100))}`);
}

export function noSuchRun(ref: string): Problem {
  return new Problem("not-found", `There is no run ${JSON.stringify(ref.slice(0, 100))}`);
}

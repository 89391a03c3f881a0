import type { Instant } from "../../kernel/clock.ts";
import type { Range } from "../../store/partition-plan.ts";
import { readPartitions } from "../../store/partitions.ts";
import { findHold, type Hold } from "../../store/retention/holds.ts";
import { raiseFloor } from "../../store/retention/retired.ts";
import { readFloor } from "../../store/rows/floor.ts";
import type { Authority } from "../authority.ts";

/** `young`: the oldest period is still to be kept. `held`: it is old enough, but something needs it. */
export type FloorOutcome =
  | { kind: "raised"; toAt: Instant }
  | { kind: "held"; range: Range; hold: Hold }
  | { kind: "young" };

/**
 * Gives up the oldest period of history, a partition of runs, if all of it ended before `endedBefore` and nothing needs it.
 * From then on nobody opens a run of it again; it is dropped when everybody who may not have heard has ended.
 * Locks   history_floor.
 * Time    none: what has ended stays ended, and whoever opens it again looks at the floor.
 * Writes  history_floor, never lower.
 * Replay  the next period, or nothing.
 */
export async function raiseHistoryFloor(authority: Authority, endedBefore: Instant): Promise<FloorOutcome> {
  const { db } = authority;
  const floorAt = await readFloor(db);
  const partitions = (await readPartitions(db)).get("run") ?? [];
  const oldest = partitions.find((one) => one.toAt > floorAt);
  if (oldest === undefined || oldest.fromAt > floorAt || oldest.toAt > endedBefore) return { kind: "young" };
  const range = { fromAt: oldest.fromAt, toAt: oldest.toAt };
  const hold = await findHold(db, range, endedBefore);
  if (hold !== undefined) return { kind: "held", range, hold };
  await authority.faults.reach("raise-floor:looked");
  await authority.transact("raise-floor", (tx) => raiseFloor(tx, range.toAt));
  return { kind: "raised", toAt: range.toAt };
}

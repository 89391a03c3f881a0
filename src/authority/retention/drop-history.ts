import type { Instant } from "../../kernel/clock.ts";
import type { Range } from "../../store/partition-plan.ts";
import { type Partition, readPartitions } from "../../store/partitions.ts";
import { findHold } from "../../store/retention/holds.ts";
import {
  detach,
  dropRetired,
  findLongUser,
  finishDetaching,
  forgetRetired,
  noteRetired,
  readHorizon,
  readRetired,
} from "../../store/retention/retired.ts";
import { readFloor } from "../../store/rows/floor.ts";
import type { Authority } from "../authority.ts";

/** A transaction that uses history for longer is a dump or a person: dropping waits for it, not it for the dropping. */
const LONG_USE_MS = 5_000;

/** The floor, and the transactions that may not know it: `next` is the first that surely does, `oldest` is under way. */
export type FloorWatch = { nowAt: Instant; floorAt: Instant; oldest: bigint; next: bigint };

/** The floor first: only of one that is committed already can the later statement say who knows it. */
export async function watchFloor(authority: Authority): Promise<FloorWatch> {
  const floorAt = await readFloor(authority.db);
  return { floorAt, ...(await readHorizon(authority.db)) };
}

/** `drop`, or leave a table of its own behind, for an operator who archives and drops it. */
export type Afterwards = "drop" | "detach";

export type Dropped = { detached: string[]; dropped: string[]; waiting: { name: string; for: string }[] };

/**
 * Parts with one partition of runs, and one of attempts, below the floor that everybody knows. Each step is found again
 * after a crash: noted, detaching, detached, dropped. It is looked at again before the first of them, for a run may have
 * been opened by somebody who had read the old floor.
 * Locks   what DETACH CONCURRENTLY and DROP lock: they wait for others, others do not wait for them.
 * Time    none.
 * Writes  partitions, retired_partition.
 * Replay  goes on.
 */
export async function dropHistory(
  authority: Authority,
  order: { floorAt: Instant; isKnown: boolean; endedBefore: Instant; afterwards: Afterwards },
): Promise<Dropped> {
  const { db } = authority;
  const report: Dropped = { detached: [], dropped: [], waiting: [] };
  await goOn(authority, order.afterwards, report);
  if (!order.isKnown) return report;
  const partitions = await readPartitions(db);
  const isBelow = (one: Partition) => one.toAt <= order.floorAt;
  const run = partitions.get("run")?.find(isBelow);
  if (run !== undefined && (await mayGo(authority, run, order.endedBefore, report))) {
    await retire(authority, run, order.afterwards, report);
  }
  const left = (await readPartitions(db)).get("run") ?? [];
  const attempts = partitions.get("attempt")?.find((one) => isBelow(one) && !left.some((run) => overlap(run, one)));
  if (attempts !== undefined) await retire(authority, attempts, order.afterwards, report);
  return report;
}

/** Finishes what was begun before. */
async function goOn(authority: Authority, afterwards: Afterwards, report: Dropped): Promise<void> {
  for (const { name, parent, exists, attached, pending } of await readRetired(authority.db)) {
    if (!exists) await forgetRetired(authority.db, name);
    else if (pending) {
      if (await finishDetaching(authority.db, { parent: parent!, name })) report.detached.push(name);
      else report.waiting.push({ name, for: "whoever uses it" });
    } else if (!attached && afterwards === "drop") await drop(authority, name, report);
  }
}

async function mayGo(authority: Authority, run: Partition, endedBefore: Instant, report: Dropped): Promise<boolean> {
  const hold = await findHold(authority.db, run, endedBefore);
  if (hold !== undefined) report.waiting.push({ name: run.name, for: `${hold.why} ${hold.id}` });
  await authority.faults.reach("drop-history:looked");
  return hold === undefined;
}

async function retire(
  authority: Authority,
  partition: Partition,
  afterwards: Afterwards,
  report: Dropped,
): Promise<void> {
  const { db } = authority;
  const { name } = partition;
  const user = await findLongUser(db, LONG_USE_MS);
  if (user !== undefined) {
    report.waiting.push({ name, for: `the long transaction of ${user.name} (process ${user.pid})` });
    return;
  }
  await noteRetired(db, partition);
  await authority.faults.reach("drop-history:noted");
  if (!(await detach(db, partition))) return;
  report.detached.push(name);
  await authority.faults.reach("drop-history:detached");
  if (afterwards === "drop") await drop(authority, name, report);
}

async function drop({ db }: Authority, name: string, report: Dropped): Promise<void> {
  if (!(await dropRetired(db, name))) {
    report.waiting.push({ name, for: "whoever reads it" });
    return;
  }
  await forgetRetired(db, name);
  report.dropped.push(name);
}

const overlap = (one: Range, other: Range) => one.fromAt < other.toAt && other.fromAt < one.toAt;

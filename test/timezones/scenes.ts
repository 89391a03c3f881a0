import type { TzData } from "../../src/app/tz-data.ts";
import type { Authority } from "../../src/authority/authority.ts";
import { followAdoption, pinZones } from "../../src/authority/timezones/pin-zones.ts";
import { toLocal } from "../../src/domain/recurrence/local.ts";
import type { Uuid } from "../../src/kernel/ids.ts";
import { adoptBehindTheBack, candidateOf, tzVersion } from "../support/tz-versions.ts";
import type { World } from "../support/world.ts";

/**
 * Two versions that disagree on Vancouver at any time, so that these stories can be told on any day: by `behind` it is
 * eight hours behind UTC (as 2025c has it in winter), by `ahead` seven (as 2026f has it).
 */
export const VANCOUVER = "America/Vancouver";
export const behind = tzVersion("2025c", { [VANCOUVER]: "PST8|-28800|" });
export const ahead = tzVersion("2026f", { [VANCOUVER]: "MST7|-25200|" });

export const MINUTE = 60_000;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** Both versions in the database, the first of them adopted and gone by. */
export async function startUnder(world: World, adopted: TzData, candidate: TzData): Promise<void> {
  await pinZones(world.authority, candidateOf(adopted));
  await pinZones(world.another(), candidateOf(candidate));
}

/** The version is adopted, and the world's own process has noticed. */
export async function adopt(world: World, version: string): Promise<void> {
  await adoptBehindTheBack(world, version);
  await followAdoption(world.authority, world.db);
}

/** Another process that goes by what is adopted. */
export async function newProcess(world: World, brings: TzData): Promise<Authority> {
  const other = world.another();
  await pinZones(other, candidateOf(brings));
  return other;
}

/** The last whole minute, so and so many minutes from it. */
export function minutesFromNow(minutes: number): number {
  return Math.floor(Date.now() / MINUTE) * MINUTE + minutes * MINUTE;
}

/** `every day at` what a clock in Vancouver shows at this instant by that version. */
export function dailyAt(at: number, version: TzData) {
  const [hour, minute] = toLocal(VANCOUVER, at, version.zones).slice(11, 16).split(":").map(Number);
  return { kind: "cron" as const, expression: `${minute} ${hour} * * *`, zone: VANCOUVER };
}

/** A schedule of that rule whose next instant is `nextAt`, its chain begun two hours before. */
export async function scheduleDue(
  world: World,
  rule: ReturnType<typeof dailyAt>,
  nextAt: number,
  change: Parameters<World["newSchedule"]>[0] = {},
): Promise<Uuid> {
  const id = await world.newSchedule({ rule, ...change });
  await world.admin.query(
    `update schedule_cursor set chain_started_at = $2, next_run_at = $3, next_due_at = $3 where schedule_id = $1`,
    [id, new Date(nextAt - 2 * HOUR), new Date(nextAt)],
  );
  return id;
}

export type Cursor = {
  next_run_at: Date | null;
  next_due_at: Date | null;
  tz_version: string;
  last_nominal_local: string | null;
  fault: string | null;
  xmin: string;
};

export async function cursorOf(world: World, scheduleId: Uuid): Promise<Cursor> {
  const found = await world.admin.query(
    `select next_run_at, next_due_at, tz_version, last_nominal_local, fault, xmin::text from schedule_cursor where schedule_id = $1`,
    [scheduleId],
  );
  return found.rows[0];
}

/** Nominal instants that ran or were skipped, in order. */
export async function instantsOf(world: World, scheduleId: Uuid): Promise<number[]> {
  const found = await world.admin.query("select scheduled_at from run where schedule_id = $1 order by scheduled_at", [
    scheduleId,
  ]);
  return found.rows.map((row) => (row.scheduled_at as Date).getTime());
}

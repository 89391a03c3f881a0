import { bounded } from "../../domain/materialization.ts";
import { isTouched } from "../../domain/recurrence/adoption/changed-zones.ts";
import { toLocal } from "../../domain/recurrence/local.ts";
import type { ZoneSource } from "../../domain/recurrence/zone-source.ts";
import { zoneOf } from "../../domain/rule-zone.ts";
import type { Instant } from "../../kernel/clock.ts";
import { PunctualError } from "../../kernel/errors.ts";
import type { Transaction } from "../../store/database.ts";
import { type CursorRow, setScheduleStatus } from "../../store/rows/cursors.ts";
import { flagCursors, type Replanned, replanCursors } from "../../store/rows/stale-cursors.ts";
import type { Authority } from "../authority.ts";
import { revisionOf } from "../revisions.ts";
import { FAULT_RETRY_MS, sentenceOf } from "../runs/plan-cursor.ts";
import { dueAtOf } from "../schedules/next-instant.ts";
import { continueUnder, standAt } from "./onward.ts";
import { followAdoption, openVersion } from "./pin-zones.ts";

/**
 * What was planned by another version of the tz database is planned anew before anything is made of it: from the last
 * nominal instant and the local time that is remembered of it, so that no local appointment runs twice or is lost. A due
 * cursor whose true instant is later is only moved; one whose true instant has gone by is due now. Zones that did not
 * change are not touched: their cursors take the new version with their next run.
 *
 * `cursors` are locked; answers them as they are now. Costs nothing while all were planned by this process's version.
 * Writes  schedule_cursor; schedule where nothing is left to come.
 */
export async function planAnew(
  authority: Authority,
  tx: Transaction,
  cursors: readonly CursorRow[],
): Promise<readonly CursorRow[]> {
  if (!cursors.some((cursor) => mayBeStale(authority, cursor))) return cursors;
  await catchUpWithAdoption(authority, tx, cursors);
  const stale = cursors.filter((cursor) => mayBeStale(authority, cursor));
  await authority.revisions.load(tx, stale.map(revisionOf));
  const versions = new Map<string, ZoneSource | undefined>();
  for (const { tz_version } of stale) {
    if (!versions.has(tz_version)) versions.set(tz_version, await openOrDoWithout(authority, tx, tz_version));
  }
  const nowAt = await tx.authorityNow();
  const planned = stale.map((cursor) => ({
    cursor,
    ...planOne(authority, cursor, versions.get(cursor.tz_version), nowAt),
  }));
  const moved = planned.flatMap(({ replanned }) => replanned ?? []);
  await replanCursors(tx, moved, authority.tzVersion);
  await flagCursors(
    tx,
    planned.flatMap(({ cursor, fault }) => (fault === undefined ? [] : [{ scheduleId: cursor.schedule_id, fault }])),
    FAULT_RETRY_MS,
  );
  const ended = moved.filter((one) => one.nextRunAt === null).map((one) => one.scheduleId);
  await setScheduleStatus(tx, ended, "finished", nowAt);
  tell(authority, planned);
  const changed = new Map(planned.map((one) => [one.cursor.schedule_id, asWritten(authority, one, nowAt)]));
  return cursors.map((cursor) => changed.get(cursor.schedule_id) ?? cursor);
}

/** Somebody may know of another version: then this process is the one that is behind, and must not plan backwards. */
async function catchUpWithAdoption(
  authority: Authority,
  tx: Transaction,
  cursors: readonly CursorRow[],
): Promise<void> {
  try {
    await followAdoption(authority, tx);
  } catch (error) {
    // Data that broke later is no reason to stop those who have what went before; only whom it planned must wait.
    const version = brokenVersion(error);
    if (version === undefined || cursors.some((cursor) => cursor.tz_version === version)) throw error;
    authority.log.error({ err: error }, "the adopted tz database is broken; this process goes on with the one it has");
  }
}

/** What a cursor was planned by only says more exactly what was served; without it, what is remembered has to do. */
async function openOrDoWithout(
  authority: Authority,
  tx: Transaction,
  version: string,
): Promise<ZoneSource | undefined> {
  try {
    return await openVersion(authority, tx, version);
  } catch (error) {
    if (brokenVersion(error) === undefined) throw error;
    authority.log.error({ err: error }, "a tz database of before is broken");
    return undefined;
  }
}

function brokenVersion(error: unknown): unknown {
  return error instanceof PunctualError && error.code === "tz-data-corrupt" ? error.details.version : undefined;
}

type Outcome = { replanned?: Replanned; fault?: string };

/** A fault that stands beside a known instant was flagged before that instant came, and may be over. */
function mayBeStale(authority: Authority, cursor: CursorRow): boolean {
  return cursor.next_run_at !== null && (cursor.tz_version !== authority.tzVersion || cursor.fault !== null);
}

function planOne(authority: Authority, cursor: CursorRow, before: ZoneSource | undefined, nowAt: Instant): Outcome {
  const { definition } = authority.revisions.get(revisionOf(cursor));
  const isFuture = cursor.next_run_at! > nowAt;
  const touched = isTouched(definition.rule, before, authority.zones);
  const wasFlagged = cursor.fault !== null && cursor.next_due_at === null && isFuture;
  if (!touched && !wasFlagged) return {};
  const compiled = authority.revisions.rule(definition);
  if (!compiled.ok) {
    // When its known instant comes it is settled like that of every rule that cannot be computed.
    return isFuture && !isPaused(cursor) ? { fault: sentenceOf(compiled.fault) } : {};
  }
  const next = bounded(continueUnder(cursor, compiled.rule, before), definition);
  const nextRunAt = touched ? next(standAt(cursor)) : cursor.next_run_at;
  const due = isPaused(cursor) ? null : dueAtOf(authority, cursor.schedule_id, definition, nextRunAt);
  const local = cursor.last_nominal_local === null ? localOfStand(cursor, definition.rule, before) : null;
  return { replanned: { scheduleId: cursor.schedule_id, nextRunAt, nextDueAt: due, local } };
}

function isPaused(cursor: CursorRow): boolean {
  return cursor.next_due_at === null && cursor.fault === null;
}

/** What clocks showed where the chain stands, by the data of then: the next adoption will want to know. */
function localOfStand(
  cursor: CursorRow,
  rule: Parameters<typeof zoneOf>[0],
  before: ZoneSource | undefined,
): string | null {
  const zone = zoneOf(rule);
  return zone === undefined || before?.findZone(zone) === undefined ? null : toLocal(zone, standAt(cursor), before);
}

function asWritten(
  authority: Authority,
  { cursor, replanned, fault }: Outcome & { cursor: CursorRow },
  nowAt: Instant,
): CursorRow {
  if (fault !== undefined) return { ...cursor, fault, next_due_at: null, fault_retry_at: nowAt };
  if (replanned === undefined) return cursor;
  return {
    ...cursor,
    next_run_at: replanned.nextRunAt,
    next_due_at: replanned.nextDueAt,
    tz_version: authority.tzVersion,
    last_nominal_local: replanned.local ?? cursor.last_nominal_local,
    fault: null,
    fault_retry_at: null,
  };
}

function tell(authority: Authority, planned: readonly (Outcome & { cursor: CursorRow })[]): void {
  for (const { cursor, fault } of planned) {
    if (fault === undefined || fault === cursor.fault) continue;
    authority.log.error({ schedule: cursor.schedule_id, fault }, "a schedule's rule cannot be computed");
  }
  const moved = planned.filter(
    ({ cursor, replanned }) => replanned !== undefined && replanned.nextRunAt !== cursor.next_run_at,
  );
  const [example] = moved;
  if (example === undefined) return;
  const { cursor, replanned } = example;
  authority.log.info(
    {
      moved: moved.length,
      example: cursor.schedule_id,
      from: cursor.next_run_at,
      to: replanned!.nextRunAt,
      tzVersion: authority.tzVersion,
    },
    "another tz database moves the next runs of schedules",
  );
}

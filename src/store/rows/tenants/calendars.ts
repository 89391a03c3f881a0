import type { CalendarDefinition } from "../../../domain/calendar/definition.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

const LOCK_TO_CHANGE = sql(
  "calendars_lock_to_change",
  "select version from calendar_head where tenant_id = $1 and name = $2 for no key update",
);
const LOCK_TO_DELETE = sql(
  "calendars_lock_to_delete",
  "select version from calendar_head where tenant_id = $1 and name = $2 for update",
);
const LOCK_TO_USE = sql(
  "calendars_lock_to_use",
  `select name from calendar_head where tenant_id = $1 and name = any($2::text[]) order by name for key share`,
);
// A name that was deleted goes on counting: a version means one definition for ever.
const INSERT = sql(
  "calendars_insert",
  `insert into calendar (tenant_id, name, version, definition, created_at, actor)
   select $1, $2, coalesce(max(version), 0) + 1, $3, $4, $5 from calendar where tenant_id = $1 and name = $2
   on conflict do nothing
   returning version`,
);
const INSERT_HEAD = sql(
  "calendars_insert_head",
  "insert into calendar_head (tenant_id, name, version) values ($1, $2, $3) on conflict do nothing returning version",
);
const MOVE_HEAD = sql(
  "calendars_move_head",
  "update calendar_head set version = $3 where tenant_id = $1 and name = $2 returning version",
);
const DELETE_HEAD = sql("calendars_delete_head", "delete from calendar_head where tenant_id = $1 and name = $2");
const FIND_USERS = sql(
  "calendars_find_users",
  `select schedule_id from calendar_use where tenant_id = $1 and calendar = $2 order by schedule_id limit $3`,
);
const FORGET_USES = sql(
  "calendars_forget_uses",
  "delete from calendar_use where schedule_id = $1 and not calendar = any($2::text[])",
);
const INSERT_USES = sql(
  "calendars_insert_uses",
  `insert into calendar_use (tenant_id, calendar, schedule_id)
   select $1, name, $2 from unnest($3::text[]) as u (name) on conflict do nothing`,
);
const READ_VERSIONS = sql(
  "calendars_read_versions",
  `select h.tenant_id, h.name, h.version
     from unnest($1::uuid[], $2::text[]) as k (tenant_id, name) join calendar_head h using (tenant_id, name)`,
);
const READ_DEFINITIONS = sql(
  "calendars_read_definitions",
  `select c.tenant_id, c.name, c.version, c.definition
     from unnest($1::uuid[], $2::text[], $3::int[]) as k (tenant_id, name, version)
     join calendar c using (tenant_id, name, version)`,
);
const KEEP_VERSIONS = sql(
  "calendars_keep_versions",
  `update schedule_cursor c set calendar_version = v.version
     from unnest($1::uuid[], $2::int[]) as v (schedule_id, version)
    where c.schedule_id = v.schedule_id and c.calendar_version is distinct from v.version`,
);

export type CalendarKey = { tenant_id: Uuid; name: string };
export type CalendarVersion = CalendarKey & { version: number };

/** The version in force, against other edits and deletion; undefined: there is no such calendar. */
export async function lockCalendarToChange(tx: Queryable, tenantId: Uuid, name: string): Promise<number | undefined> {
  return (await tx.query<{ version: number }>(LOCK_TO_CHANGE, [tenantId, name]))[0]?.version;
}

/** The same against schedules that would begin to use it, too. */
export async function lockCalendarToDelete(tx: Queryable, tenantId: Uuid, name: string): Promise<number | undefined> {
  return (await tx.query<{ version: number }>(LOCK_TO_DELETE, [tenantId, name]))[0]?.version;
}

/** Those of the calendars that exist, held against deletion; edits go on. */
export async function lockCalendarsToUse(tx: Queryable, tenantId: Uuid, names: readonly string[]): Promise<string[]> {
  return (await tx.query<{ name: string }>(LOCK_TO_USE, [tenantId, names])).map((row) => row.name);
}

/**
 * Writes the next version and puts it in force, in place of the one that is locked to change (`first`: there was none);
 * undefined: another transaction has created the same name meanwhile.
 */
export async function insertCalendarVersion(
  tx: Queryable,
  row: { tenantId: Uuid; name: string; definition: CalendarDefinition; actor: string; first: boolean },
  nowAt: Instant,
): Promise<number | undefined> {
  const { tenantId, name, definition, actor, first } = row;
  const values = [tenantId, name, JSON.stringify(definition), instantText(nowAt), actor];
  const [made] = await tx.query<{ version: number }>(INSERT, values);
  if (made === undefined) return undefined;
  const [head] = await tx.query(first ? INSERT_HEAD : MOVE_HEAD, [tenantId, name, made.version]);
  return head === undefined ? undefined : made.version;
}

export async function deleteCalendarHead(tx: Queryable, tenantId: Uuid, name: string): Promise<void> {
  await tx.query(DELETE_HEAD, [tenantId, name]);
}

/** Schedules that use the calendar and are not deleted. */
export async function findCalendarUsers(tx: Queryable, tenantId: Uuid, name: string, limit: number): Promise<Uuid[]> {
  return (await tx.query<{ schedule_id: Uuid }>(FIND_USERS, [tenantId, name, limit])).map((row) => row.schedule_id);
}

/** What a schedule uses from now on; the calendars are locked to use. */
export async function setCalendarUses(
  tx: Queryable,
  tenantId: Uuid,
  scheduleId: Uuid,
  names: readonly string[],
): Promise<void> {
  await tx.query(FORGET_USES, [scheduleId, names]);
  if (names.length > 0) await tx.query(INSERT_USES, [tenantId, scheduleId, names]);
}

/** The versions in force; a calendar that does not exist has no row. */
export function readCalendarVersions(tx: Queryable, keys: readonly CalendarKey[]): Promise<CalendarVersion[]> {
  return tx.query<CalendarVersion>(READ_VERSIONS, [keys.map((key) => key.tenant_id), keys.map((key) => key.name)]);
}

export function readCalendarDefinitions(
  tx: Queryable,
  keys: readonly CalendarVersion[],
): Promise<(CalendarVersion & { definition: CalendarDefinition })[]> {
  return tx.query(READ_DEFINITIONS, [
    keys.map((key) => key.tenant_id),
    keys.map((key) => key.name),
    keys.map((key) => key.version),
  ]);
}

/**
 * What the locked cursors' instants were judged by: the calendar's version, and of several the sum of their versions,
 * which every edit raises.
 */
export async function keepCalendarVersions(tx: Queryable, versions: ReadonlyMap<Uuid, number>): Promise<void> {
  if (versions.size > 0) await tx.query(KEEP_VERSIONS, [[...versions.keys()], [...versions.values()]]);
}

import type { CalendarDefinition } from "../../domain/calendar/definition.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** One version of a calendar. Instants are epoch ms. */
export type CalendarView = {
  name: string;
  version: number;
  definition: CalendarDefinition;
  actor: string;
  createdAt: Instant;
};

/** A version without its dates, of which there may be thousands. */
export type CalendarSummary = Omit<CalendarView, "definition"> & { entries: number };

const SUMMARY = `c.name, c.version, c.actor, c.created_at as "createdAt",
  jsonb_array_length(c.definition -> 'dates') + jsonb_array_length(c.definition -> 'ranges')
    + jsonb_array_length(c.definition -> 'yearly') as entries`;

const FIND = sql(
  "read_calendar",
  `select c.name, c.version, c.definition, c.actor, c.created_at as "createdAt"
     from calendar_head h join calendar c using (tenant_id, name, version)
    where h.tenant_id = $1 and h.name = $2`,
);
const FIND_ALL = sql(
  "read_calendars_by_name",
  `select c.name, c.version, c.definition, c.actor, c.created_at as "createdAt"
     from calendar_head h join calendar c using (tenant_id, name, version)
    where h.tenant_id = $1 and h.name = any($2::text[])`,
);
const FIND_VERSION = sql(
  "read_calendar_version",
  `select name, version, definition, actor, created_at as "createdAt"
     from calendar where tenant_id = $1 and name = $2 and version = $3`,
);
const LIST = sql(
  "read_calendars",
  `select ${SUMMARY} from calendar_head h join calendar c using (tenant_id, name, version)
    where h.tenant_id = $1 and h.name > $2 order by h.name limit $3`,
);
const LIST_VERSIONS = sql(
  "read_calendar_versions",
  `select ${SUMMARY} from calendar c
    where c.tenant_id = $1 and c.name = $2 and c.version < coalesce($3::int, 2147483647)
    order by c.version desc limit $4`,
);
const NAMES = sql("read_calendar_names", "select name from calendar_head where tenant_id = $1 order by name limit $2");

/** The version in force. */
export async function findCalendar(db: Queryable, tenantId: Uuid, name: string): Promise<CalendarView | undefined> {
  return (await db.query<CalendarView>(FIND, [tenantId, name]))[0];
}

/** The versions in force of those that exist. */
export function findCalendars(db: Queryable, tenantId: Uuid, names: readonly string[]): Promise<CalendarView[]> {
  return db.query<CalendarView>(FIND_ALL, [tenantId, names]);
}

/** Any version, of a deleted calendar too. */
export async function findCalendarVersion(
  db: Queryable,
  tenantId: Uuid,
  name: string,
  version: number,
): Promise<CalendarView | undefined> {
  return (await db.query<CalendarView>(FIND_VERSION, [tenantId, name, version]))[0];
}

/** By name; `afterName` is the last one of the page before. */
export function listCalendars(
  db: Queryable,
  tenantId: Uuid,
  page: { afterName?: string; limit: number },
): Promise<CalendarSummary[]> {
  return db.query<CalendarSummary>(LIST, [tenantId, page.afterName ?? "", page.limit]);
}

/** Newest first, of a deleted calendar too; `beforeVersion` is the last one of the page before. */
export function listCalendarVersions(
  db: Queryable,
  tenantId: Uuid,
  name: string,
  page: { beforeVersion?: number; limit: number },
): Promise<CalendarSummary[]> {
  return db.query<CalendarSummary>(LIST_VERSIONS, [tenantId, name, page.beforeVersion ?? null, page.limit]);
}

export async function listCalendarNames(db: Queryable, tenantId: Uuid, limit: number): Promise<string[]> {
  return (await db.query<{ name: string }>(NAMES, [tenantId, limit])).map((row) => row.name);
}

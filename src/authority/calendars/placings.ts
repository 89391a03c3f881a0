import { LRUCache } from "lru-cache";
import { type Calendar, compileCalendar } from "../../domain/calendar/compile.ts";
import { placeByCalendars, type ScheduleCalendars, useCalendars } from "../../domain/calendar/place.ts";
import type { Definition } from "../../domain/definition.ts";
import type { Place } from "../../domain/placement.ts";
import type { CompiledRule } from "../../domain/recurrence/compile.ts";
import type { Instant } from "../../kernel/clock.ts";
import { deriveRunId, type Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql, type Transaction } from "../../store/database.ts";
import type { CursorRow } from "../../store/rows/cursors.ts";
import {
  type CalendarVersion,
  keepCalendarVersions,
  readCalendarDefinitions,
  readCalendarVersions,
} from "../../store/rows/tenants/calendars.ts";
import type { Authority } from "../authority.ts";
import { revisionOf } from "../revisions.ts";
import { namesOf } from "./use-calendars.ts";

/** Calendars this process has read. A version never changes, so it may be kept. */
export type CalendarCache = LRUCache<string, Calendar>;

/** Entries of all calendars kept. */
const KEPT_ENTRIES = 500_000;

export function createCalendarCache(): CalendarCache {
  return new LRUCache({ maxSize: KEPT_ENTRIES });
}

/** A schedule names a calendar that is not there: whoever asks must not decide its instants. */
export class MissingCalendar extends Error {}

/** What the calendars of a batch's schedules make of their instants. */
export type Placings = {
  /** Undefined: the schedule uses no calendars. Throws MissingCalendar. */
  of(cursor: CursorRow, definition: Definition, rule: CompiledRule): Place | undefined;
  /**
   * Looks up which of the earlier instants that were asked for since have a run; true if there were any, and then what
   * was placed must be placed anew.
   */
  learn(tx: Transaction): Promise<boolean>;
  /** Keeps, with each schedule that was asked for, the version that was used. */
  record(tx: Transaction): Promise<void>;
};

const none: Placings = { of: () => undefined, learn: async () => false, record: async () => {} };

/**
 * Reads the calendars in force, after the batch's locks and its time: an edit that was answered before an instant came
 * counts for that instant. Without calendars in the batch there is no statement.
 */
export async function loadPlacings(
  authority: Authority,
  tx: Transaction,
  cursors: readonly CursorRow[],
): Promise<Placings> {
  const wanted = new Map<string, { tenant_id: Uuid; name: string }>();
  for (const cursor of cursors) {
    const { tenant_id } = cursor;
    for (const name of namesOf(authority.revisions.get(revisionOf(cursor)).definition)) {
      wanted.set(`${tenant_id} ${name}`, { tenant_id, name });
    }
  }
  if (wanted.size === 0) return none;
  const calendars = await readCalendars(authority.calendars, tx, await readCalendarVersions(tx, [...wanted.values()]));
  const runs = createRunQuestions();
  const versions = new Map<Uuid, number>();
  // A plan that is made anew looks at no day again.
  const used = new Map<Uuid, { definition: Definition; rule: CompiledRule; all: ScheduleCalendars }>();
  const use = (scheduleId: Uuid, definition: Definition, rule: CompiledRule, named: readonly Calendar[]) => {
    const known = used.get(scheduleId);
    if (known?.definition === definition && known.rule === rule) return known.all;
    const all = useCalendars(definition, rule, named, authority.zones);
    used.set(scheduleId, { definition, rule, all });
    return all;
  };
  return {
    of(cursor, definition, rule) {
      const names = namesOf(definition);
      if (names.length === 0) return undefined;
      const named = names.map((name) => {
        const calendar = calendars.get(`${cursor.tenant_id} ${name}`);
        if (calendar === undefined) throw new MissingCalendar(`calendars: there is no calendar "${name}"`);
        return calendar;
      });
      const { schedule_id: scheduleId } = cursor;
      const all = use(scheduleId, definition, rule, named);
      // From the cursor on this batch decides, by the rule; before it, what is written counts.
      const undecidedFrom = cursor.next_run_at ?? Number.POSITIVE_INFINITY;
      const hasRun = (at: Instant) => at >= undecidedFrom || runs.has(scheduleId, at);
      const ask = (ats: readonly Instant[]) => runs.ask(scheduleId, ats);
      versions.set(
        scheduleId,
        named.reduce((sum, calendar) => sum + calendar.version, 0),
      );
      return (at) => placeByCalendars(all, at, hasRun, ask).placement;
    },
    learn: (tx) => runs.learn(tx),
    record: (tx) => keepCalendarVersions(tx, versions),
  };
}

/** The calendars of these versions, by tenant and name. */
async function readCalendars(
  cache: CalendarCache,
  tx: Queryable,
  versions: readonly CalendarVersion[],
): Promise<Map<string, Calendar>> {
  const keyOf = (one: CalendarVersion) => `${one.tenant_id} ${one.name} ${one.version}`;
  const found = new Map<string, Calendar>();
  const missing: CalendarVersion[] = [];
  for (const one of versions) {
    const calendar = cache.get(keyOf(one));
    if (calendar === undefined) missing.push(one);
    else found.set(`${one.tenant_id} ${one.name}`, calendar);
  }
  if (missing.length === 0) return found;
  for (const row of await readCalendarDefinitions(tx, missing)) {
    const { dates, ranges, yearly } = row.definition;
    const calendar = compileCalendar(row.name, row.version, row.definition);
    cache.set(keyOf(row), calendar, { size: 1 + dates.length + ranges.length + yearly.length });
    found.set(`${row.tenant_id} ${row.name}`, calendar);
  }
  return found;
}

const FIND_RUNS = sql(
  "calendars_find_shifted_runs",
  `select r.id from unnest($1::uuid[], $2::timestamptz[]) as k (id, scheduled_at) join run r using (id, scheduled_at)
    where r.state <> 'skipped'`,
);

/** Whether instants before the cursor have a run, as far as it was looked up. */
function createRunQuestions() {
  const known = new Map<Uuid, Map<Instant, boolean>>();
  const asked = new Map<Uuid, Set<Instant>>();
  return {
    has(scheduleId: Uuid, at: Instant): boolean | undefined {
      return known.get(scheduleId)?.get(at);
    },
    ask(scheduleId: Uuid, ats: readonly Instant[]): void {
      const all = asked.get(scheduleId) ?? new Set();
      for (const at of ats) all.add(at);
      asked.set(scheduleId, all);
    },
    async learn(tx: Transaction): Promise<boolean> {
      if (asked.size === 0) return false;
      const keys = [...asked].flatMap(([scheduleId, ats]) =>
        [...ats].map((at) => ({ scheduleId, at, id: deriveRunId(scheduleId, "schedule", at) })),
      );
      asked.clear();
      const ids = keys.map((one) => one.id);
      const rows = await tx.query<{ id: Uuid }>(FIND_RUNS, [ids, keys.map((one) => one.at)]);
      const found = new Set(rows.map((row) => row.id));
      for (const { scheduleId, at, id } of keys) {
        const answers = known.get(scheduleId) ?? new Map<Instant, boolean>();
        known.set(scheduleId, answers.set(at, found.has(id)));
      }
      return true;
    },
  };
}

import { isDeepStrictEqual } from "node:util";
import type { CalendarDefinition } from "../../domain/calendar/definition.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type CalendarView, findCalendar } from "../../store/reads/calendars.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { insertCalendarVersion, lockCalendarToChange } from "../../store/rows/tenants/calendars.ts";
import type { Authority } from "../authority.ts";
import { lookAgain, refuse, transactOrRefuse } from "../refusal.ts";

export type PutCalendarOutcome =
  | { kind: "created" | "changed" | "unchanged"; calendar: CalendarView }
  /** Somebody else's version is in force (undefined: there is no such calendar). */
  | { kind: "conflict"; current: CalendarView | undefined };

/**
 * Makes the next version of a calendar and puts it in force; `expectedVersion` 0: there must be none yet. No schedule is
 * rewritten: every instant is judged by the version in force when it comes.
 * Locks   calendar_head, for no key update; a name that is new, by inserting its version.
 * Time    authority time, after the lock.
 * Writes  calendar, calendar_head, audit_event.
 * Replay  `unchanged`: the definition in force is this one, whatever version was expected.
 */
export function putCalendar(
  authority: Authority,
  request: {
    tenantId: Uuid;
    actor: string;
    name: string;
    expectedVersion: number;
    definition: CalendarDefinition;
  },
): Promise<PutCalendarOutcome> {
  const { tenantId, actor, name, expectedVersion, definition } = request;
  return transactOrRefuse<PutCalendarOutcome>(authority, "put-calendar", async (tx) => {
    const before = await lockCalendarToChange(tx, tenantId, name);
    const current = before === undefined ? undefined : (await findCalendar(tx, tenantId, name))!;
    if (current !== undefined && isDeepStrictEqual(current.definition, definition)) {
      return { kind: "unchanged", calendar: current };
    }
    await authority.faults.reach("put-calendar:looked");
    if ((before ?? 0) !== expectedVersion) refuse<PutCalendarOutcome>({ kind: "conflict", current });
    const nowAt = await tx.authorityNow();
    const version = await insertCalendarVersion(
      tx,
      { tenantId, name, definition, actor, first: current === undefined },
      nowAt,
    );
    if (version === undefined) lookAgain();
    // Versions are kept for ever: the event need not repeat thousands of dates.
    const action = current === undefined ? "calendar.create" : "calendar.change";
    const versionBefore = current === undefined ? undefined : { version: before };
    await writeAudit(tx, { tenantId, actor, action, subject: name, before: versionBefore, after: { version } });
    const calendar = (await findCalendar(tx, tenantId, name))!;
    return { kind: current === undefined ? "created" : "changed", calendar };
  });
}

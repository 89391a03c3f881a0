import type { Uuid } from "../../kernel/ids.ts";
import { writeAudit } from "../../store/rows/audit.ts";
import { deleteCalendarHead, findCalendarUsers, lockCalendarToDelete } from "../../store/rows/tenants/calendars.ts";
import type { Authority } from "../authority.ts";

export type DeleteCalendarOutcome =
  | { kind: "deleted"; version: number }
  | { kind: "not-found" }
  /** Some of the schedules that use it. */
  | { kind: "in-use"; scheduleIds: Uuid[] };

const USERS_SHOWN = 10;

/**
 * Deletes a calendar that no schedule uses; its versions stay readable, and a new one of that name counts on.
 * Locks   calendar_head, for update: no schedule begins to use it meanwhile.
 * Writes  calendar_head, audit_event.
 * Replay  `not-found`.
 */
export function deleteCalendar(
  authority: Authority,
  request: { tenantId: Uuid; actor: string; name: string },
): Promise<DeleteCalendarOutcome> {
  const { tenantId, actor, name } = request;
  return authority.transact("delete-calendar", async (tx): Promise<DeleteCalendarOutcome> => {
    const version = await lockCalendarToDelete(tx, tenantId, name);
    if (version === undefined) return { kind: "not-found" };
    const scheduleIds = await findCalendarUsers(tx, tenantId, name, USERS_SHOWN);
    if (scheduleIds.length > 0) return { kind: "in-use", scheduleIds };
    await deleteCalendarHead(tx, tenantId, name);
    await writeAudit(tx, { tenantId, actor, action: "calendar.delete", subject: name, before: { version } });
    return { kind: "deleted", version };
  });
}

import { changedFields } from "../../domain/preview/field-diff.ts";
import type { ScheduleView } from "../../store/reads/schedules.ts";

/**
 * What an audit event says of a schedule. Its content is in its revisions, which are kept for ever; a payload may be large
 * and is told of by name only.
 */
export function audited({ revision, name, key, status, managedBy }: ScheduleView) {
  return { revision, name, key, status, managedBy };
}

/** The two sides of an edit: the revisions, and the fields that differ by their paths. */
export function auditedChange(before: ScheduleView, after: ScheduleView) {
  const { changes } = changedFields(told(before), told(after));
  const isOtherPayload = changedFields({ payload: before.payload }, { payload: after.payload }).changes.length > 0;
  const side = (revision: number, of: "from" | "to") => ({
    revision,
    ...(isOtherPayload ? { payload: `of revision ${revision}` } : {}),
    ...Object.fromEntries(changes.map((one) => [one.field, one[of] ?? null])),
  });
  return { before: side(before.revision, "from"), after: side(after.revision, "to") };
}

function told({ name, labels, notes, managedBy, status, definition }: ScheduleView) {
  return { ...definition, name, labels, notes, managedBy, status };
}

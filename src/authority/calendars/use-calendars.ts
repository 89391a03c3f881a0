import type { Definition } from "../../domain/definition.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Transaction } from "../../store/database.ts";
import { lockCalendarsToUse, setCalendarUses } from "../../store/rows/tenants/calendars.ts";

/** The first calendar that a definition names and the tenant does not have; those it has cannot be deleted meanwhile. */
export async function findUnknownCalendar(
  tx: Transaction,
  tenantId: Uuid,
  definition: Definition,
): Promise<string | undefined> {
  const names = namesOf(definition);
  if (names.length === 0) return undefined;
  const known = new Set(await lockCalendarsToUse(tx, tenantId, names));
  return names.find((name) => !known.has(name));
}

/** Keeps which calendars a schedule uses: those of its current revision. */
export async function keepCalendarUses(
  tx: Transaction,
  schedule: { tenantId: Uuid; scheduleId: Uuid },
  before: Definition | undefined,
  after: Definition | undefined,
): Promise<void> {
  const names = namesOf(after);
  if (names.length === 0 && namesOf(before).length === 0) return;
  await setCalendarUses(tx, schedule.tenantId, schedule.scheduleId, names);
}

export function namesOf(definition: Definition | undefined): string[] {
  return (definition?.calendars ?? []).map((use) => use.name);
}

import { type Definition, definitionSchema } from "../../domain/definition.ts";
import { slotGuard, slotsOf } from "../../domain/guard.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

export const GUARDS_FIT = "2: open runs hold min(open, slots) guards";

const HOLDERS = sql(
  "invariant_guards",
  `select l.schedule_id, v.definition::jsonb as definition,
          count(*) filter (where l.guard is null)::int as blocked,
          count(*) filter (where l.guard = l.id)::int as surplus,
          coalesce(array_agg(l.guard) filter (where l.guard <> l.id), '{}') as seats
     from live_run l join schedule_cursor c using (schedule_id)
     join schedule_revision v on v.schedule_id = c.schedule_id and v.revision = c.revision
    where l.schedule_id = any($1::uuid[]) and l.held_by <> 'pause'
      and not exists (select from outbox o where o.kind = 'schedule' and o.schedule_id = l.schedule_id)
    group by l.schedule_id, v.definition::jsonb`,
);

type Holders = { schedule_id: Uuid; definition: Definition; blocked: number; surplus: number; seats: Uuid[] };

/**
 * A schedule with n slots and open runs has min(open, n) holders of slots; a holder of its own id is surplus from an
 * edit, or competes with nobody. Answers the schedules that do not fit.
 */
export async function findUnfitGuards(db: Queryable, scheduleIds: readonly Uuid[]): Promise<object[]> {
  const rows = await db.query<Holders>(HOLDERS, [scheduleIds]);
  return rows.flatMap(({ schedule_id, definition, blocked, surplus, seats }) => {
    const slots = slotsOf(definitionSchema.parse(definition).overlap);
    return fits(schedule_id, slots, blocked, seats) ? [] : [{ schedule_id, slots, blocked, surplus, seats }];
  });
}

function fits(scheduleId: Uuid, slots: number, blocked: number, seats: readonly Uuid[]): boolean {
  if (slots === Number.POSITIVE_INFINITY) return blocked === 0 && seats.length === 0;
  const known = new Set(Array.from({ length: slots }, (_, k) => slotGuard(scheduleId, k)));
  return seats.every((seat) => known.has(seat)) && seats.length === Math.min(blocked + seats.length, slots);
}

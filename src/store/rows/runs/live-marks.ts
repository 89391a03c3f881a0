import type { Telling } from "../../../domain/planning/told-ends.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { located } from "../../located.ts";
import { instantText } from "../../values.ts";

const MARK_CANCEL_REQUESTED = sql(
  "live_mark_cancel_requested",
  "update live_run set cancel_requested_at = coalesce(cancel_requested_at, $2) where id = any($1::uuid[])",
);

/** Asks the workers of running runs to stop; the rows are locked. */
export async function markCancelRequested(tx: Queryable, ids: readonly Uuid[], nowAt: Instant): Promise<void> {
  if (ids.length > 0) await tx.query(MARK_CANCEL_REQUESTED, [ids, instantText(nowAt)]);
}

const TELL_MORE = sql(
  "live_tell_more",
  `update live_run set tells_end = tells_end or $2, pauses_on_failure = pauses_on_failure or $3 where schedule_id = $1`,
);

/** Has the open runs of a schedule, all locked, tell it of these ends, too. */
export async function tellMore(
  tx: Queryable,
  scheduleId: Uuid,
  { tellsEnd, pausesOnFailure }: Pick<Telling, "tellsEnd" | "pausesOnFailure">,
): Promise<void> {
  await tx.query(TELL_MORE, [scheduleId, tellsEnd, pausesOnFailure]);
}

const SET_GUARDS = sql(
  "live_set_guards",
  `update live_run l set guard = g.guard
     from ${located("live_run", "$1::uuid[], $2::uuid[]", "id, guard")} g
    where l.ctid = g.place`,
);

/** Moves guards between locked holders. */
export async function setGuards(tx: Queryable, guards: readonly { id: Uuid; guard: Uuid }[]): Promise<void> {
  if (guards.length === 0) return;
  await tx.query(SET_GUARDS, [guards.map((one) => one.id), guards.map((one) => one.guard)]);
}

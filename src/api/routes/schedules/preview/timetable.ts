import type { Definition } from "../../../../domain/definition.ts";
import { type Timetable, timetableOf } from "../../../../domain/preview/timetable.ts";
import { compileRule } from "../../../../domain/recurrence/compile.ts";
import type { Instant } from "../../../../kernel/clock.ts";
import type { Uuid } from "../../../../kernel/ids.ts";
import type { ApiContext, Caller } from "../../../context.ts";
import { placeWithCalendars } from "../../../input/calendars.ts";
import { checkWindow, ruleProblem } from "../../../input/check-work.ts";
import { Problem } from "../../../problems/problem.ts";

type Timed = Pick<Definition, "rule" | "startAt" | "endAt" | "calendars" | "windowMs">;

/**
 * The timetable that a definition would have from `fromAt` on; `scheduleId` where the schedule exists. Throws a problem
 * that names what is wrong with it.
 */
export async function getTimetable(
  context: ApiContext,
  caller: Caller,
  definition: Timed,
  fromAt: Instant,
  scheduleId?: Uuid,
): Promise<Timetable> {
  checkWindow(definition);
  const compiled = compileRule(definition.rule, context.zones);
  if (!compiled.ok) throw ruleProblem(compiled.fault, definition.rule, context.zones);
  const place = await placeWithCalendars(context, caller.tenantId, definition, compiled.rule, fromAt);
  const { windowMs } = definition;
  return timetableOf(
    compiled.rule,
    definition,
    place,
    windowMs === undefined ? undefined : { ms: windowMs, scheduleId },
  );
}

/** The timetable of a definition that was accepted once; without instants where it cannot be computed any more. */
export async function findTimetable(...asked: Parameters<typeof getTimetable>): Promise<Timetable> {
  try {
    return await getTimetable(...asked);
  } catch (error) {
    if (error instanceof Problem) return NO_INSTANTS;
    throw error;
  }
}

export const NO_INSTANTS = timetableOf({ kind: "dates", instants: [] }, {});

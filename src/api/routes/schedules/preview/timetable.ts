import type { Definition } from "../../../../domain/definition.ts";
import { atNominal } from "../../../../domain/placement.ts";
import { placedBy, type Timetable, timetableOf } from "../../../../domain/preview/timetable.ts";
import { compileRule } from "../../../../domain/recurrence/compile.ts";
import type { Uuid } from "../../../../kernel/ids.ts";
import type { ApiContext, Caller } from "../../../context.ts";
import { checkWindow, ruleProblem } from "../../../input/check-work.ts";

type Timed = Pick<Definition, "rule" | "startAt" | "endAt">;

/**
 * The timetable that a definition would have; `scheduleId` where the schedule exists. Throws a problem that names what is
 * wrong with it.
 */
export async function getTimetable(
  context: ApiContext,
  _caller: Caller,
  definition: Timed,
  _scheduleId?: Uuid,
): Promise<Timetable> {
  checkWindow(definition);
  const compiled = compileRule(definition.rule, context.zones);
  if (!compiled.ok) throw ruleProblem(compiled.fault, definition.rule, context.zones);
  return timetableOf(compiled.rule, definition, placedBy(atNominal));
}

/** The timetable of a definition that was accepted once; without instants where it cannot be computed any more. */
export async function findTimetable(
  context: ApiContext,
  _caller: Caller,
  definition: Timed,
  _scheduleId: Uuid,
): Promise<Timetable> {
  const compiled = compileRule(definition.rule, context.zones);
  if (!compiled.ok) return NO_INSTANTS;
  return timetableOf(compiled.rule, definition, placedBy(atNominal));
}

export const NO_INSTANTS = timetableOf({ kind: "dates", instants: [] }, {}, placedBy(atNominal));

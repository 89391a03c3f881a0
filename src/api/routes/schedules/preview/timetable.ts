import type { Definition } from "../../../../domain/definition.ts";
import { atNominal } from "../../../../domain/placement.ts";
import { placedBy, type Timetable, timetableOf } from "../../../../domain/preview/timetable.ts";
import { compileRule } from "../../../../domain/recurrence/compile.ts";
import type { ApiContext, Caller } from "../../../context.ts";
import { checkWindow, ruleProblem } from "../../../input/check-work.ts";

type Timed = Pick<Definition, "rule" | "startAt" | "endAt">;

/** The timetable that a definition would have. Throws a problem that names what is wrong with it. */
export async function getTimetable(context: ApiContext, _caller: Caller, definition: Timed): Promise<Timetable> {
  checkWindow(definition);
  const compiled = compileRule(definition.rule, context.zones);
  if (!compiled.ok) throw ruleProblem(compiled.fault, definition.rule, context.zones);
  return timetableOf(compiled.rule, definition, placedBy(atNominal));
}

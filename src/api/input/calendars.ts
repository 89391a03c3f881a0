import { compileCalendar } from "../../domain/calendar/compile.ts";
import { type Placed, placeByCalendars, useCalendars } from "../../domain/calendar/place.ts";
import type { Definition } from "../../domain/definition.ts";
import type { CompiledRule } from "../../domain/recurrence/compile.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findCalendars, listCalendarNames } from "../../store/reads/calendars.ts";
import type { ApiContext } from "../context.ts";
import { type FieldFault, type Problem, problemOfFaults } from "../problems/problem.ts";
import { didYouMean } from "./did-you-mean.ts";
import { showValue } from "./issues.ts";

/** Names looked through for what was meant. */
const NAMES_CONSIDERED = 1000;
const NAMES_SHOWN = 20;

/**
 * What the calendars of a definition make of instants, as they stand now; undefined: it names none. An instant up to
 * `sinceAt` is taken to have no run that a later one could be merged into. Throws a problem for an unknown calendar.
 */
export async function placeWithCalendars(
  context: ApiContext,
  tenantId: Uuid,
  definition: Pick<Definition, "rule" | "startAt" | "endAt" | "calendars">,
  rule: CompiledRule,
  sinceAt: Instant,
): Promise<((nominalAt: Instant) => Placed) | undefined> {
  const names = (definition.calendars ?? []).map((use) => use.name);
  if (names.length === 0) return undefined;
  const found = new Map((await findCalendars(context.db, tenantId, names)).map((one) => [one.name, one]));
  const unknown = names.find((name) => !found.has(name));
  if (unknown !== undefined) throw await unknownCalendar(context, tenantId, definition, unknown);
  const calendars = names.map((name) => compileCalendar(name, found.get(name)!.version, found.get(name)!.definition));
  const all = useCalendars(definition, rule, calendars, context.zones);
  return (nominalAt) => placeByCalendars(all, nominalAt, (earlierAt) => earlierAt > sinceAt);
}

/** A calendar that a schedule names and its tenant does not have. */
export async function unknownCalendar(
  context: ApiContext,
  tenantId: Uuid,
  definition: Pick<Definition, "calendars">,
  name: string,
): Promise<Problem> {
  const known = await listCalendarNames(context.db, tenantId, NAMES_CONSIDERED);
  const meant = didYouMean(name, known);
  const shown = known.slice(0, NAMES_SHOWN).join(", ") + (known.length > NAMES_SHOWN ? ", …" : "");
  const fault: FieldFault = {
    field: `calendars[${(definition.calendars ?? []).findIndex((use) => use.name === name)}].name`,
    message: "there is no such calendar",
    found: showValue(name),
    allowed: known.length === 0 ? "none: make one with PUT /v1/calendars/{name}" : shown,
    ...(meant === undefined ? {} : { didYouMean: meant }),
  };
  return problemOfFaults("unknown-calendar", [fault]);
}

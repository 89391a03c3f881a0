import { z } from "zod";
import { type Definition, inItsClass } from "../../../domain/definition.ts";
import type { ScheduleView } from "../../../store/reads/schedules.ts";
import { scheduleFields } from "../../input/fields.ts";
import { definitionOf } from "./split.ts";

const { key: _key, ...changeable } = scheduleFields.shape;
const nullable = Object.fromEntries(
  Object.entries(changeable)
    .filter(([, field]) => field instanceof z.ZodOptional)
    .map(([name, field]) => [name, field.nullable()]),
);

/** Every field of a schedule but its key; null takes an optional one away, of which the types know nothing. */
export const patchFields = scheduleFields
  .omit({ key: true })
  .partial()
  .extend(nullable as Record<never, never>);

type Patch = z.output<typeof patchFields>;

/** What a schedule would be after a patch: each field that was sent replaces that whole field. */
export function patched(
  current: ScheduleView,
  body: Patch,
  sentBody: unknown,
): { readonly changed: Patch; readonly definition: Definition } {
  // Defaults belong to creation: only what was really sent is a change.
  const sent = new Set(Object.keys(sentBody as object));
  const changed = Object.fromEntries(Object.entries(body).filter(([field]) => sent.has(field))) as Patch;
  const definition = inItsClass(withoutNulls({ ...current.definition, ...definitionOf(changed as Definition) }));
  return { changed, definition };
}

function withoutNulls(definition: Definition): Definition {
  return Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null)) as Definition;
}

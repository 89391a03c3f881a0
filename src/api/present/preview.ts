import { z } from "zod";
import type { Preview } from "../../domain/preview/answer.ts";
import { LABEL_KINDS } from "../../domain/recurrence/touched/label.ts";
import { shownInstant } from "../input/fields.ts";
import { showInstant } from "./instant.ts";

const labelSchema = z.strictObject({
  kind: z
    .enum(LABEL_KINDS)
    .describe(
      "gap: a local time that does not exist; overlap: one that comes twice; calendar; window; clock: another offset than the instant before",
    ),
  text: z.string(),
});

/** What a rule alone decides; also what the command line prints. */
export const timingSchema = z.strictObject({
  description: z.string().describe("When it runs, in plain English"),
  warnings: z.array(z.string()).describe("Where people often expect something else"),
  instants: z.array(
    z.strictObject({
      at: shownInstant.describe("Nominal"),
      local: z.string().describe("RFC 9557, in the rule's zone, by the pinned tz database"),
      offset: z.string().describe("From UTC, such as -04:00"),
      dueAt: shownInstant.describe("When its run may start; later than `at` where a calendar or a window moved it"),
      dueLocal: z.string().optional().describe("The same in the rule's zone, where it differs"),
      dueBefore: shownInstant.optional().describe("Of a new schedule with a window: it is due before this instant"),
      label: z.string().optional().describe("All labels in one sentence"),
      labels: z.array(labelSchema).describe("What touched this instant"),
    }),
  ),
  notes: z
    .array(
      labelSchema.extend({
        at: shownInstant.describe("The first instant left out, or when the clocks jumped over it"),
        local: z.string(),
        count: z.int().describe("Instants in a row that were left out for this reason"),
      }),
    )
    .describe("What is left out between the instants"),
});

export function presentTiming(preview: Preview): z.output<typeof timingSchema> {
  return {
    description: preview.description,
    warnings: [...preview.warnings],
    instants: preview.runs.map(({ at, dueAt, dueBefore, labels, ...run }) => ({
      at: showInstant(at),
      ...run,
      dueAt: showInstant(dueAt),
      ...(dueBefore === undefined ? {} : { dueBefore: showInstant(dueBefore) }),
      ...(labels.length === 0 ? {} : { label: labels.map(({ text }) => text).join("; ") }),
      labels: [...labels],
    })),
    notes: preview.notes.map(({ at, ...note }) => ({ at: showInstant(at), ...note })),
  };
}

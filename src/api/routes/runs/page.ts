import { z } from "zod";
import { CLASSES } from "../../../domain/definition.ts";
import { TRIGGERS } from "../../../domain/states.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { listRuns, type RunPage, WALK_ROWS } from "../../../store/reads/history.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { afterSchema, instantSchema, limitSchema, shownInstant } from "../../input/fields.ts";
import { readLabel } from "../../input/label.ts";
import { showInstant } from "../../present/instant.ts";
import { presentListedRun, RUN_STATES, runListItemSchema } from "../../present/run.ts";
import type { Answer, Reply } from "../../route.ts";

/** History pages, of a tenant or of one schedule. */

export const runFilters = z.strictObject({
  state: z
    .enum(RUN_STATES)
    .optional()
    .describe(
      "An open state shows what is so now and is not stable over pages; an ended one, what had ended by the watermark",
    ),
  class: z.enum(CLASSES).optional(),
  trigger: z.enum(TRIGGERS).optional(),
  label: z.string().max(300).optional().describe("`name=value`: runs of schedules that have this label now"),
  from: instantSchema.optional().describe("Nominal instants from here on (inclusive)"),
  to: instantSchema.optional().describe("Nominal instants before this (exclusive)"),
  order: z.enum(["newest", "oldest"]).default("newest").describe("Which nominal instants come first"),
  limit: limitSchema,
  after: afterSchema,
});

export const runPageAnswer: Answer = {
  kind: "ok",
  description: `A page, by nominal instant and id. It looks at ${WALK_ROWS.toLocaleString("en")} rows at most: with a filter that few match it may be short, or empty, and still have a \`next\``,
  schema: z.strictObject({
    items: z.array(runListItemSchema),
    next: z.string().nullable().describe("null: this was the last page; no other sign says so"),
    watermark: shownInstant.describe(
      "History is complete up to here; later rows are not shown, on any page of this walk",
    ),
    source: z.literal("authority"),
  }),
};

/** The cursor carries the bound of the first page, in whole microseconds, and how far the walk has come. */
export async function pageOfRuns(
  context: ApiContext,
  caller: Caller,
  query: z.output<typeof runFilters>,
  scheduleId?: Uuid,
): Promise<Reply> {
  const { after, limit, label, ...filters } = query;
  const { state, class: class_, trigger, from, to, order } = filters;
  const list = JSON.stringify(
    ["runs", caller.tenantId, scheduleId, state, class_, trigger, label, from, to, order].map((one) => one ?? null),
  );
  const position = after === undefined ? undefined : context.cursors.read(list, after);
  const boundAt = position === undefined ? await readWatermark(context.db) : Number(position[0]) / 1000;
  const { items, next } = await listRuns(context.db, caller.tenantId, {
    ...filters,
    ...(label === undefined ? {} : { label: readLabel(label) }),
    ...(scheduleId === undefined ? {} : { scheduleId }),
    ...(position && { after: { scheduledAt: Number(position[1]), id: String(position[2]) } }),
    boundAt,
    limit,
  } as RunPage);
  return {
    kind: "ok",
    body: {
      items: items.map(presentListedRun),
      next: next ? context.cursors.write(list, [Math.round(boundAt * 1000), next.scheduledAt, next.id]) : null,
      watermark: showInstant(boundAt),
      source: "authority",
    },
  };
}

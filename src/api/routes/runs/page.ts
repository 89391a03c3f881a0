import { z } from "zod";
import { CLASSES } from "../../../domain/definition.ts";
import { TRIGGERS } from "../../../domain/states.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { listRuns } from "../../../store/reads/runs.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { afterSchema, instantSchema, limitSchema, shownInstant } from "../../input/fields.ts";
import { showInstant } from "../../present/instant.ts";
import { presentListedRun, RUN_STATES, runListItemSchema } from "../../present/run.ts";
import type { Answer, Reply } from "../../route.ts";

/** History pages, of a tenant or of one schedule. */

export const runFilters = z.strictObject({
  state: z
    .enum(RUN_STATES)
    .optional()
    .describe("Filters by an open state show what is so now and are not stable over pages"),
  class: z.enum(CLASSES).optional(),
  trigger: z.enum(TRIGGERS).optional(),
  from: instantSchema.optional().describe("Nominal instants from here on (inclusive)"),
  to: instantSchema.optional().describe("Nominal instants before this (exclusive)"),
  limit: limitSchema,
  after: afterSchema,
});

export const runPageAnswer: Answer = {
  kind: "ok",
  description: "A page, latest nominal instant first",
  schema: z.strictObject({
    items: z.array(runListItemSchema),
    next: z.string().nullable(),
    watermark: shownInstant.describe(
      "History is complete up to here; later rows are not shown, on any page of this walk",
    ),
    source: z.literal("authority"),
  }),
};

/** The cursor carries the bound of the first page and the last row, both in whole microseconds. */
export async function pageOfRuns(
  context: ApiContext,
  caller: Caller,
  query: z.output<typeof runFilters>,
  scheduleId?: Uuid,
): Promise<Reply> {
  const { after, limit, ...filters } = query;
  const list = JSON.stringify([
    "runs",
    caller.tenantId,
    scheduleId ?? null,
    filters.state,
    filters.class,
    filters.trigger,
    filters.from,
    filters.to,
  ]);
  const position = after === undefined ? undefined : context.cursors.read(list, after);
  const boundAt = position === undefined ? await readWatermark(context.db) : Number(position[0]) / 1000;
  const rows = await listRuns(context.authority.db, caller.tenantId, {
    ...filters,
    ...(scheduleId === undefined ? {} : { scheduleId }),
    ...(position === undefined ? {} : { after: { scheduledAt: Number(position[1]) / 1000, id: String(position[2]) } }),
    boundAt,
    limit: limit + 1,
  } as Parameters<typeof listRuns>[2]);
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  const next =
    rows.length > items.length && last !== undefined
      ? context.cursors.write(list, [Math.round(boundAt * 1000), Math.round(last.scheduledAt * 1000), last.id])
      : null;
  return {
    kind: "ok",
    body: { items: items.map(presentListedRun), next, watermark: showInstant(boundAt), source: "authority" },
  };
}

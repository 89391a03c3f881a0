import { z } from "zod";
import { CLASSES } from "../../../domain/definition.ts";
import { RESOLUTIONS, type Resolution } from "../../../domain/rollup.ts";
import { readRollups } from "../../../store/reads/rollups.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import { READERS } from "../../context.ts";
import { instantSchema } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstant } from "../../present/instant.ts";
import { presentStats, statsSchema } from "../../present/stats.ts";
import { fieldProblem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";

/** Of a class, in one answer. */
const MOST_BUCKETS = 1_500;
const DEFAULT_BUCKETS = { minute: 60, hour: 24, day: 30 } as const;
const resolutions = Object.keys(RESOLUTIONS) as [Resolution, ...Resolution[]];

export const getStatsRoute = defineRoute({
  method: "get",
  path: "/v1/stats",
  tag: "service",
  summary: "Count what happened to the tenant's runs, by the minute, hour or day",
  description:
    "Made of counts that are kept as runs start and end, so asking costs the same however many runs there were. Minutes are kept for 90 days, hours and days for 400.",
  roles: READERS,
  params: noFields,
  query: z.strictObject({
    from: instantSchema
      .optional()
      .describe("From the bucket that holds this; default: an hour, a day or 30 days before `to`"),
    to: instantSchema
      .optional()
      .describe("To the end of the bucket before this; default: now, the last bucket unfinished"),
    class: z.enum(CLASSES).optional().describe("Default: all, each for itself"),
    resolution: z.enum(resolutions).default("minute").describe("Width of a bucket; days are those of UTC"),
  }),
  answer: { kind: "ok", description: "What happened, and as of when it is complete", schema: statsSchema },
  problems: ["busy"],
  async handle({ query }, context, caller) {
    const { resolution } = query;
    const widthMs = RESOLUTIONS[resolution].ms;
    const settledAt = await readWatermark(context.db);
    const toAt = Math.ceil((query.to ?? context.clock.now()) / widthMs) * widthMs;
    const fromAt =
      query.from === undefined
        ? toAt - DEFAULT_BUCKETS[resolution] * widthMs
        : Math.floor(query.from / widthMs) * widthMs;
    refuseUnless(fromAt, toAt, widthMs);
    const classes = query.class === undefined ? CLASSES : [query.class];
    const period = { classes, resolution, fromAt, toAt };
    const { rows, asOf } = await readRollups(context.db, caller.tenantId, period, settledAt);
    return { kind: "ok", body: presentStats({ ...period, rows, asOf }) };
  },
});

function refuseUnless(fromAt: number, toAt: number, widthMs: number): void {
  if (fromAt >= toAt) {
    const allowed = `later than ${showInstant(fromAt)}`;
    throw fieldProblem({ field: "to", message: "is not after from", found: showInstant(toAt), allowed });
  }
  const buckets = (toAt - fromAt) / widthMs;
  if (buckets > MOST_BUCKETS) {
    throw fieldProblem({
      field: "from",
      message: "makes too long a period for this resolution",
      found: `${buckets} buckets`,
      allowed: `at most ${MOST_BUCKETS}`,
    });
  }
}

import { z } from "zod";
import { CLASSES, type ResourceClass } from "../../../domain/definition.ts";
import { DEFAULT_QUOTAS, untilNextDay } from "../../../domain/quotas/tenant.ts";
import { readRollups } from "../../../store/reads/rollups.ts";
import { readWatermark } from "../../../store/reads/status.ts";
import { findClassQuotas, findTenantQuotas, readLaneUse, readUsed } from "../../../store/reads/tenants/quotas.ts";
import { type ApiContext, READERS } from "../../context.ts";
import { shownInstant } from "../../input/fields.ts";
import { noFields } from "../../input/no-fields.ts";
import { showInstant } from "../../present/instant.ts";
import { countSchema } from "../../present/operation.ts";
import { presentClassQuota } from "../../present/quotas.ts";
import { defineRoute } from "../../route.ts";

const HOUR_MS = 3_600_000;
const MINUTE_MS = 60_000;
/** Counting stops here, or at the limit where that is more. */
const MOST_COUNTED = 10_000;

const limitSchema = z.int().nullable().describe("null: no limit");
const laneSchema = z.strictObject({
  running: z.int().describe("Attempts that run now"),
  maxRunning: limitSchema,
  waiting: countSchema.describe("Runs that wait: for a start, for their turn, for another attempt"),
  startedLastMinute: z.int().describe("Runs that started in the last whole minute"),
  startRatePerSecond: limitSchema,
});

const usageSchema = z
  .strictObject({
    schedules: z.strictObject({ used: countSchema, limit: limitSchema }),
    queuedRuns: z.strictObject({ used: countSchema, limit: limitSchema }),
    requestedRunsPerDay: z.strictObject({
      used: z.int().nullable().describe("null: there is no limit, and nobody counts"),
      limit: limitSchema,
      resetsAt: shownInstant.describe("When the next UTC day begins"),
    }),
    payloadBytes: z.strictObject({ limit: limitSchema }),
    minIntervalMs: z.strictObject({ limit: limitSchema }),
    apiRatePerSecond: z.strictObject({ limit: limitSchema, burst: z.int() }),
    runsToday: z
      .strictObject({ started: z.int(), asOf: shownInstant.describe("What started up to here is counted") })
      .describe("Runs that started since midnight UTC, scheduled ones too"),
    classes: z.strictObject(
      Object.fromEntries(CLASSES.map((one) => [one, laneSchema])) as Record<ResourceClass, typeof laneSchema>,
    ),
    asOf: shownInstant,
  })
  .meta({ id: "Usage" });

export const getUsageRoute = defineRoute({
  method: "get",
  path: "/v1/usage",
  tag: "quotas",
  summary: "Say how much of its quotas the tenant uses",
  roles: READERS,
  params: noFields,
  query: noFields,
  answer: { kind: "ok", description: "Each quota with what is used of it", schema: usageSchema },
  problems: ["busy"],
  async handle(_call, context, { tenantId }) {
    const nowAt = context.clock.now();
    const { db } = context;
    const [kept, ofClasses] = await Promise.all([findTenantQuotas(db, tenantId), findClassQuotas(db, tenantId)]);
    const quotas = kept ?? DEFAULT_QUOTAS;
    const most = Math.max(MOST_COUNTED, quotas.schedules ?? 0, quotas.queuedRuns ?? 0) + 1;
    const [used, lanes, started] = await Promise.all([
      readUsed(db, tenantId, most),
      readLaneUse(db, tenantId, CLASSES, MOST_COUNTED + 1),
      readStarted(context, tenantId, nowAt),
    ]);
    const counted = (n: number, atMost: number) => ({ value: Math.min(n, atMost - 1), capped: n >= atMost });
    const classes = CLASSES.map((name) => {
      const { maxRunning, startRatePerSecond } = presentClassQuota(ofClasses.find((one) => one.class === name));
      const { running = 0, waiting = 0 } = lanes.find((one) => one.class === name) ?? {};
      const startedLastMinute = started.lastMinute.get(name) ?? 0;
      return [
        name,
        { running, maxRunning, waiting: counted(waiting, MOST_COUNTED + 1), startedLastMinute, startRatePerSecond },
      ];
    });
    return {
      kind: "ok",
      body: {
        schedules: { used: counted(used.schedules, most), limit: quotas.schedules },
        queuedRuns: { used: counted(used.queuedRuns, most), limit: quotas.queuedRuns },
        requestedRunsPerDay: {
          used: quotas.requestedRunsPerDay === null ? null : used.requestedRunsPerDay,
          limit: quotas.requestedRunsPerDay,
          resetsAt: showInstant(nowAt + untilNextDay(nowAt)),
        },
        payloadBytes: { limit: quotas.payloadBytes },
        minIntervalMs: { limit: quotas.minIntervalMs },
        apiRatePerSecond: { limit: quotas.apiRatePerSecond, burst: quotas.apiBurst },
        runsToday: { started: started.today, asOf: showInstant(started.asOf) },
        classes: Object.fromEntries(classes),
        asOf: showInstant(nowAt),
      },
    };
  },
});

/** From counts that are kept as runs start; nobody scans runs for it. */
async function readStarted({ db }: ApiContext, tenantId: string, nowAt: number) {
  const settledAt = await readWatermark(db);
  const minuteAt = Math.floor(nowAt / MINUTE_MS) * MINUTE_MS - MINUTE_MS;
  const midnightAt = nowAt + untilNextDay(nowAt) - 24 * HOUR_MS;
  const nextHourAt = Math.ceil((nowAt + 1) / HOUR_MS) * HOUR_MS;
  const classes = [...CLASSES];
  const ofDay = { classes, resolution: "hour", fromAt: midnightAt, toAt: nextHourAt } as const;
  const ofMinute = { classes, resolution: "minute", fromAt: minuteAt, toAt: minuteAt + MINUTE_MS } as const;
  const [day, minute] = await Promise.all([
    readRollups(db, tenantId, ofDay, settledAt),
    readRollups(db, tenantId, ofMinute, settledAt),
  ]);
  return {
    today: day.rows.reduce((sum, row) => sum + row.started, 0),
    asOf: day.asOf,
    lastMinute: new Map(minute.rows.map((row) => [row.class, row.started])),
  };
}

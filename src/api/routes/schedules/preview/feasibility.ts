import { z } from "zod";
import type { Definition, ResourceClass } from "../../../../domain/definition.ts";
import { busiest, dueInMinute, expectedDuration, minuteOf } from "../../../../domain/preview/demand.ts";
import { type Quote, quote, START_OBJECTIVE_MS } from "../../../../domain/preview/quote.ts";
import { type Timetable, timetableOf } from "../../../../domain/preview/timetable.ts";
import { compileRule } from "../../../../domain/recurrence/compile.ts";
import { plural } from "../../../../domain/recurrence/words.ts";
import type { Instant } from "../../../../kernel/clock.ts";
import type { Uuid } from "../../../../kernel/ids.ts";
import {
  countDueInMinutes,
  readActiveDefinitions,
  readCapacity,
  readDurations,
} from "../../../../store/reads/capacity.ts";
import type { ApiContext } from "../../../context.ts";
import { shownInstant } from "../../../input/fields.ts";
import { showInstant } from "../../../present/instant.ts";

export const feasibilitySchema = z
  .strictObject({
    verdict: z
      .enum(["within-objective", "needs-window", "over-quota", "no-workers"])
      .describe("over-quota: a limit of the tenant holds the last run back, not the workers"),
    text: z.string().describe("The verdict in plain English"),
    minuteAt: shownInstant.describe("The busiest minute among the previewed ones"),
    expectedRuns: z
      .strictObject({ value: z.int(), capped: z.boolean().describe("There are at least so many") })
      .describe("Runs of the tenant and class in that minute, this schedule included"),
    p95Ms: z.int().describe("Expected duration of a run"),
    slots: z.int().describe("Of the class, over all live workers; all tenants share them"),
    maxRunning: z.int().nullable(),
    startRatePerSecond: z.int().nullable(),
    limitedBy: z.enum(["slots", "max-running", "start-rate", "nothing"]),
    lastStartsAfterMs: z.int().nullable().describe("How long after its due instant the latest run starts; null: never"),
    windowMsNeeded: z
      .int()
      .nullable()
      .describe("Window over which all these runs could start within the objective, if each schedule had it; 0: none"),
    objectiveMs: z.int(),
    basis: z
      .strictObject({
        expectedRuns: z
          .enum(["all-active-schedules", "part-of-active-schedules"])
          .describe(
            "part: a tenant with more than 500 active schedules is counted by the newest 500 and by what is due",
          ),
        p95Ms: z
          .enum(["recent-runs", "workers", "class-default"])
          .describe("The tenant's own runs of a week, else what the workers have seen, else an assumption"),
        samples: z.int().describe("Recent runs that were looked at"),
      })
      .describe("Where the figures come from"),
  })
  .meta({ id: "Feasibility" });

/** Schedules whose rules are asked; beyond, the quote is made of a part. */
const ASKED_AT_MOST = 500;
const MINUTES_AT_MOST = 10;

/**
 * Quotes the busiest minute among the first ten that the timetable runs in. `exceptId` is the previewed schedule itself,
 * where it exists: it counts by its new timetable.
 */
export async function quoteFeasibility(
  context: ApiContext,
  request: {
    tenantId: Uuid;
    class: ResourceClass;
    dueAts: readonly Instant[];
    exceptId?: Uuid;
  },
): Promise<z.output<typeof feasibilitySchema> | null> {
  const { tenantId, class: class_, dueAts, exceptId } = request;
  const minutes = [...new Set(dueAts.map(minuteOf))].slice(0, MINUTES_AT_MOST);
  if (minutes.length === 0) return null;
  const { db } = context;
  const [capacity, recentMs, definitions] = await Promise.all([
    readCapacity(db, tenantId, class_),
    readDurations(db, tenantId, class_),
    readActiveDefinitions(db, tenantId, exceptId, ASKED_AT_MOST + 1),
  ]);
  const isPart = definitions.length > ASKED_AT_MOST;
  const others = definitions.slice(0, ASKED_AT_MOST).filter(({ definition }) => definition.class === class_);
  const timetables = others.flatMap((one) => timetableOfOther(one, context));
  const due = isPart ? await countDueInMinutes(db, tenantId, class_, minutes, exceptId) : new Map<Instant, number>();
  const dueIn = (minute: Instant) => {
    const known = dueInMinute(timetables, minute);
    // Of those whose rules were not asked, only how many there are is known: as if at the beginning of the minute.
    const unknown = Math.max(0, (due.get(minute) ?? 0) - known.length);
    return [...dueAts.filter((at) => minuteOf(at) === minute), ...known, ...new Array<Instant>(unknown).fill(minute)];
  };
  const found = busiest(new Map(minutes.map((minute) => [minute, dueIn(minute)])))!;
  const { slots, maxRunning, startRatePerSecond, workersP95Ms } = capacity;
  const { p95Ms, basis, samples } = expectedDuration(recentMs, workersP95Ms, class_);
  const quoted = quote({ dueAts: found.dueAts, p95Ms, slots, maxRunning, startRatePerSecond });
  return {
    ...quoted,
    text: textOf(quoted, class_),
    minuteAt: showInstant(found.at),
    expectedRuns: { value: found.dueAts.length, capped: isPart },
    p95Ms,
    slots,
    maxRunning,
    startRatePerSecond,
    objectiveMs: START_OBJECTIVE_MS,
    basis: { expectedRuns: isPart ? "part-of-active-schedules" : "all-active-schedules", p95Ms: basis, samples },
  };
}

/** With its window and without its calendars: these would make the minute less busy, never more. */
function timetableOfOther(
  { id, definition }: { id: Uuid; definition: Definition },
  { zones }: ApiContext,
): Timetable[] {
  const compiled = compileRule(definition.rule, zones);
  const { windowMs } = definition;
  const window = windowMs === undefined ? undefined : { ms: windowMs, scheduleId: id };
  return compiled.ok ? [timetableOf(compiled.rule, definition, undefined, window)] : [];
}

function textOf(quoted: Quote, class_: ResourceClass): string {
  const last = `the latest run starts about ${Math.ceil((quoted.lastStartsAfterMs ?? 0) / 1000)} s after its instant`;
  const minutes = plural(Math.ceil((quoted.windowMsNeeded ?? 0) / 60_000), "minute");
  const window = `spread over a window of ${minutes}, all of its runs could start in time`;
  switch (quoted.verdict) {
    case "within-objective":
      return `All runs of the busiest minute start within ${START_OBJECTIVE_MS / 1000} s`;
    case "needs-window":
      return `There are too few slots for the busiest minute: ${last}; ${window}`;
    case "no-workers":
      return `No live worker serves class ${class_}: nothing starts until one does`;
    case "over-quota":
      return quoted.windowMsNeeded === null
        ? `The tenant's limit in class ${class_} is 0: nothing starts`
        : `The tenant's limits in class ${class_} hold the busiest minute back: ${last}; ${window}`;
  }
}

import { scheduleSchema } from "../../present/schedule.ts";
import type { Admission } from "./preview/admission.ts";
import { feasibilitySchema } from "./preview/feasibility.ts";

/** The answer to who makes or changes a schedule: what was taken, and whether its runs can be expected in time. */
export const takenScheduleSchema = scheduleSchema.extend({
  feasibility: feasibilitySchema
    .optional()
    .describe("Only where the class cannot start the runs of the busiest minute in time: see `onInfeasible` of quotas"),
});

export function withFeasibility<Body extends object>(body: Body, { feasibility }: Admission) {
  return feasibility === undefined ? body : { ...body, feasibility };
}

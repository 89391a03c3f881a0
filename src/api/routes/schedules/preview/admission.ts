import type { z } from "zod";
import type { Definition } from "../../../../domain/definition.ts";
import { upcomingRuns } from "../../../../domain/preview/upcoming.ts";
import { isInfeasible } from "../../../../domain/quotas/admission.ts";
import type { Uuid } from "../../../../kernel/ids.ts";
import { findClassQuotas } from "../../../../store/reads/tenants/quotas.ts";
import type { ApiContext, Caller } from "../../../context.ts";
import { Problem } from "../../../problems/problem.ts";
import { type feasibilitySchema, quoteFeasibility } from "./feasibility.ts";
import { getTimetable } from "./timetable.ts";

/** Instants that are quoted: enough to meet a busy minute among the next ones. */
const ASKED = 10;

/** `feasibility` is there where the class cannot keep up; `isRefused`: and the tenant's policy is to refuse that. */
export type Admission = { feasibility: z.output<typeof feasibilitySchema> | undefined; isRefused: boolean };

export const NOTHING_TO_ASK: Admission = { feasibility: undefined, isRefused: false };

/** Asks, before a schedule is taken, whether its class can start its runs in time. Throws problems of its rule. */
export async function askAdmission(
  context: ApiContext,
  caller: Caller,
  definition: Definition,
  exceptId?: Uuid,
): Promise<Admission> {
  const { tenantId } = caller;
  const quotas = await findClassQuotas(context.db, tenantId);
  const policy = quotas.find((one) => one.class === definition.class)?.onInfeasible ?? "warn";
  if (policy === "accept") return NOTHING_TO_ASK;
  const fromAt = context.clock.now();
  const timetable = await getTimetable(context, caller, definition, fromAt, exceptId);
  const { runs } = upcomingRuns(timetable, fromAt, Math.min(ASKED, definition.maxRuns ?? ASKED));
  const quoted = await quoteFeasibility(context, {
    tenantId,
    class: definition.class,
    dueAts: runs.map((run) => run.dueAt),
    ...(exceptId === undefined ? {} : { exceptId }),
  });
  if (quoted === null || !isInfeasible(quoted)) return NOTHING_TO_ASK;
  return { feasibility: quoted, isRefused: policy === "refuse" };
}

/** Whether a change touches what the runs' times are made of, or who runs them. */
export function changesTiming(before: Definition, after: Definition): boolean {
  const timing = ({ rule, startAt, endAt, maxRuns, calendars, windowMs, class: class_ }: Definition) =>
    JSON.stringify([rule, startAt, endAt, maxRuns, calendars, windowMs, class_]);
  return timing(before) !== timing(after);
}

export function infeasibleProblem({ feasibility }: Admission): Problem {
  return new Problem("infeasible", feasibility?.text ?? "The runs could not start in time", { more: { feasibility } });
}

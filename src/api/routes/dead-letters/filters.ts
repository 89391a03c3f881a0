import { z } from "zod";
import type { LetterFilter } from "../../../domain/dead-letters.ts";
import { CLASSES } from "../../../domain/definition.ts";
import type { ApiContext, Caller } from "../../context.ts";
import { instantSchema } from "../../input/fields.ts";
import { fieldProblem, Problem } from "../../problems/problem.ts";
import { getScheduleId } from "../../resolve.ts";

/** Which dead letters are meant, in a query or in a body. */
export const letterFields = {
  class: z.enum(CLASSES).optional(),
  reason: z.string().min(1).max(100).optional().describe("Why the run was given up, such as `attempts-exhausted`"),
  fingerprint: z.string().min(1).max(100).optional().describe("Failures of one kind, as `…/groups` names them"),
  from: instantSchema.optional().describe("Given up from here on (inclusive)"),
  to: instantSchema.optional().describe("Given up before this (exclusive)"),
};
export const ofScheduleField = z
  .string()
  .max(300)
  .optional()
  .describe("Only runs of this schedule, `sch_…` or `key:<key>`");

type Sent = {
  scheduleId?: string | undefined;
  class?: string | undefined;
  reason?: string | undefined;
  fingerprint?: string | undefined;
  from?: number | undefined;
  to?: number | undefined;
};

/** `within`: where the fields stand, for a fault to name them. */
export async function filterOf(context: ApiContext, caller: Caller, sent: Sent, within = ""): Promise<LetterFilter> {
  const { scheduleId: ref, class: class_, reason, fingerprint, from, to } = sent;
  if (from !== undefined && to !== undefined && from >= to) {
    const show = (at: number) => new Date(at).toISOString();
    const allowed = `later than ${show(from)}`;
    throw fieldProblem({ field: `${within}to`, message: "is not after from", found: show(to), allowed });
  }
  return {
    ...(ref === undefined ? {} : { scheduleId: await getScheduleId(context, caller, ref) }),
    ...(class_ === undefined ? {} : { class: class_ }),
    ...(reason === undefined ? {} : { reason }),
    ...(fingerprint === undefined ? {} : { fingerprint }),
    ...(from === undefined ? {} : { fromAt: from }),
    ...(to === undefined ? {} : { toAt: to }),
  };
}

export function noSuchLetter(ref: string): Problem {
  return new Problem("not-found", `There is no dead letter of run ${JSON.stringify(ref.slice(0, 100))}`);
}

import type { Quote } from "../preview/quote.ts";

/** What becomes of a schedule whose class cannot start its runs in time: taken, taken with a warning, or refused. */
export const ADMISSION_POLICIES = ["accept", "warn", "refuse"] as const;
export type AdmissionPolicy = (typeof ADMISSION_POLICIES)[number];

/**
 * Whether the quote says that the busiest minute is too much. That no worker serves the class right now says nothing of
 * the instant in question: nobody is refused while workers are started anew.
 */
export function isInfeasible({ verdict }: Pick<Quote, "verdict">): boolean {
  return verdict === "needs-window" || verdict === "over-quota";
}

import { fieldProblem } from "../problems/problem.ts";

/**
 * The number in `If-Match`, which holds an ETag as a read gave it out; undefined without the header. `what` has that
 * number, such as the revision of a schedule.
 */
export function readIfMatch(
  header: string | undefined,
  what: { number: "revision" | "version"; of: "schedule" | "calendar" | "quotas" | "email template" },
): number | undefined {
  if (header === undefined) return undefined;
  const number = /^(?:W\/)?"(\d{1,9})"$/.exec(header)?.[1];
  if (number !== undefined) return Number(number);
  throw fieldProblem({
    field: "If-Match",
    message: `is no ${what.number}`,
    found: JSON.stringify(header.slice(0, 80)),
    allowed: `the ETag of the ${what.of}, such as "3"`,
  });
}

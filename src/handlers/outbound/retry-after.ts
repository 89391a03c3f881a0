import type { Instant } from "../../kernel/clock.ts";

const MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)";
const TIME = "\\d{2}:\\d{2}:\\d{2}";
/** The three forms of RFC 9110, 5.6.7; the last of them says no zone and means GMT. */
const DATES = new RegExp(
  `^[A-Z][a-z]{2}, \\d{2} ${MONTH} \\d{4} ${TIME} GMT$|^[A-Z][a-z]+, \\d{2}-${MONTH}-\\d{2} ${TIME} GMT$|^[A-Z][a-z]{2} ${MONTH} [ \\d]\\d ${TIME} \\d{4}$`,
);
/** Nobody waits so long; what is longer is still a number. */
const LONGEST_MS = 10 * 365 * 86_400_000;

/** How long a `Retry-After` asks to wait: seconds, or until a date. Undefined for anything else, and where it is over. */
export function retryAfterOf(header: string | string[] | undefined, nowAt: Instant): number | undefined {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? "";
  const ms = /^\d+$/.test(text) ? Number(text) * 1000 : DATES.test(text) ? dateOf(text) - nowAt : Number.NaN;
  return ms > 0 ? Math.min(Math.ceil(ms), LONGEST_MS) : undefined;
}

const dateOf = (text: string) => Date.parse(text.endsWith("GMT") ? text : `${text} GMT`);

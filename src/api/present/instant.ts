import type { Instant } from "../../kernel/clock.ts";

/** RFC 3339 UTC; milliseconds only where there are some. Microseconds stay inside: they order rows, people do not read them. */
export function showInstant(at: Instant): string {
  const text = new Date(Math.floor(at)).toISOString();
  return text.endsWith(".000Z") ? `${text.slice(0, -5)}Z` : text;
}

export function showInstantOrNull(at: Instant | null): string | null {
  return at === null ? null : showInstant(at);
}

import type { Instant } from "../kernel/clock.ts";
import { callerError } from "../kernel/errors.ts";

/** How instants cross the border to PostgreSQL as text; arrays go in binary (arrays.ts). */

const DAY_MS = 86_400_000;
const TWO = Array.from({ length: 100 }, (_, n) => String(n).padStart(2, "0"));
const THREE = Array.from({ length: 1000 }, (_, n) => String(n).padStart(3, "0"));

// Instants of one batch share their day, mostly: the date's text and its number are worked out once.
let shownDay = Number.NaN;
let shownDate = "";
let readDate = "";
let readDayMs = 0;

const FIRST_AT = Date.UTC(1970, 0, 1) - 719_162 * DAY_MS; // 0001-01-01
const END_AT = Date.UTC(10_000, 0, 1);

/** Whether the instant is within the years 0001 to 9999; others are written in ways that nothing here reads back. */
export function isStorable(at: Instant): boolean {
  return at >= FIRST_AT && at < END_AT;
}

/** An instant as PostgreSQL reads it; keeps microseconds. Years 0001 to 9999, others are the caller's error. */
export function instantText(at: Instant): string {
  if (!isStorable(at)) {
    const details = { found: at, allowed: "0001-01-01T00:00:00Z to 9999-12-31T23:59:59Z" };
    throw callerError("invalid-request", "An instant is outside the years 0001 to 9999", details);
  }
  const whole = Math.floor(at);
  const day = Math.floor(whole / DAY_MS);
  if (day !== shownDay) {
    shownDate = new Date(day * DAY_MS).toISOString().slice(0, -14);
    shownDay = day;
  }
  const ms = whole - day * DAY_MS;
  const seconds = Math.floor(ms / 1000);
  const micros = Math.round((at - whole) * 1000);
  const time = `${TWO[Math.floor(seconds / 3600)]}:${TWO[Math.floor(seconds / 60) % 60]}:${TWO[seconds % 60]}`;
  const fraction = `${THREE[ms % 1000]}${micros === 0 ? "" : THREE[Math.min(micros, 999)]}`;
  return `${shownDate}T${time}.${fraction}Z`;
}

const ZERO = 48;
const digits2 = (text: string, at: number) => (text.charCodeAt(at) - ZERO) * 10 + text.charCodeAt(at + 1) - ZERO;

/** `2026-11-29 18:50:35.123456+00` → epoch ms with a microsecond fraction. Years 0001 to 9999. */
export function parseInstant(text: string): Instant {
  const date = text.slice(0, 10);
  if (date !== readDate) {
    readDayMs = Date.parse(`${date}T00:00:00Z`);
    readDate = date;
  }
  const seconds = digits2(text, 11) * 3600 + digits2(text, 14) * 60 + digits2(text, 17);
  let at = 19;
  let micros = 0;
  if (text[at] === ".") {
    let scale = 100_000;
    for (at++; ; at++, scale /= 10) {
      const digit = text.charCodeAt(at) - ZERO;
      if (!(digit >= 0 && digit <= 9)) break;
      micros += digit * scale;
    }
  }
  const offsetSeconds = digits2(text, at + 1) * 3600 + (text[at + 3] === ":" ? digits2(text, at + 4) * 60 : 0);
  const sign = text[at] === "-" ? -1 : 1;
  return readDayMs + (seconds - sign * offsetSeconds) * 1000 + micros / 1000;
}

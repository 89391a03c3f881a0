/** Instants and local times as people write them. */
import { DAY_SECONDS, dayOf, monthLength } from "./civil.ts";
import { FIRST_INSTANT, LAST_NOMINAL } from "./compiled.ts";
import { type RuleFault, refuse } from "./fault.ts";
import { firstReading, type Zone } from "./zone.ts";

const SHAPE = /^(\d{4})-(\d{2})-(\d{2})[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?([Zz]|[+-]\d{2}:\d{2})?$/;

const ALLOWED_INSTANT =
  "an RFC 3339 instant with its offset, such as 2026-10-01T09:00:00Z, or a local time together with `zone`";
const ALLOWED_LOCAL = "a local time without an offset, such as 2026-10-01T09:00, since `zone` is given";

const ALLOWED_LAST = new Date(LAST_NOMINAL).toISOString().replace(".000", "");

/** What is wrong with an instant that no schedule reaches, or that no calendar has; undefined for all others. */
export function outOfReach(field: string, text: string, at: number): RuleFault | undefined {
  if (at >= FIRST_INSTANT && at <= LAST_NOMINAL) return undefined;
  if (at < FIRST_INSTANT) {
    const allowed = "0000-01-01T00:00:00Z or later";
    return { field, found: text, message: "No calendar has this instant.", allowed };
  }
  return { field, found: text, message: "No schedule goes on so far ahead.", allowed: `${ALLOWED_LAST} or earlier` };
}

/** `at` in epoch milliseconds, and the whole wall second that was written. */
type Moment = { readonly at: number; readonly wall: number };

/**
 * Reads an instant, or a local time in `zone` where one is given. A local time that a clock change
 * skips becomes the instant at which the gap ends; one that is repeated, its first pass. Throws `FaultyRule`.
 */
export function readMoment(field: string, text: string, zone: Zone | undefined): Moment {
  const moment = momentOf(field, text, zone);
  const fault = outOfReach(field, text, moment.at);
  return fault === undefined ? moment : refuse(fault);
}

function momentOf(field: string, text: string, zone: Zone | undefined): Moment {
  const allowed = zone === undefined ? ALLOWED_INSTANT : ALLOWED_LOCAL;
  const parts = SHAPE.exec(text);
  if (parts === null) return refuse({ field, found: text, message: "This is not a date and time.", allowed });
  const [year, month, day, hour, minute, second] = parts.slice(1, 7).map((part) => Number(part ?? 0)) as Six;
  const offset = parts[8];
  if (month < 1 || month > 12 || day < 1 || day > monthLength(year, month)) {
    refuse({ field, found: text, message: "There is no such date.", allowed });
  }
  if (hour > 23 || minute > 59 || second > 59)
    refuse({ field, found: text, message: "There is no such time of day.", allowed });
  const wall = dayOf(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
  const ms = Number((parts[7] ?? "").padEnd(3, "0").slice(0, 3));
  if (zone === undefined) {
    if (offset === undefined) {
      refuse({
        field,
        found: text,
        message: "Without an offset or a zone this is not one instant.",
        allowed,
        suggestion: `${text}Z`,
      });
    }
    return { at: (wall - readOffset(field, text, offset, allowed)) * 1000 + ms, wall };
  }
  if (offset !== undefined) {
    refuse({ field, found: text, message: "An offset and a zone together may contradict each other.", allowed });
  }
  const at = firstReading(zone, wall);
  return { at: at * 1000 + (showsWholeSecond(zone, at, wall) ? ms : 0), wall };
}

type Six = [number, number, number, number, number, number];

/** In a gap the answer is where the gap ends, and the fraction of the skipped second means nothing there. */
function showsWholeSecond(zone: Zone, at: number, wall: number): boolean {
  return firstReading(zone, wall + 1) > at;
}

function readOffset(field: string, found: string, offset: string, allowed: string): number {
  if (/^[Zz]$/.test(offset)) return 0;
  const [hours, minutes] = [Number(offset.slice(1, 3)), Number(offset.slice(4, 6))];
  if (hours > 23 || minutes > 59) refuse({ field, found, message: "There is no such offset.", allowed });
  return (offset.startsWith("-") ? -1 : 1) * (hours * 3600 + minutes * 60);
}

import type { Instant } from "../../kernel/clock.ts";
import type { Definition } from "../definition.ts";
import type { Placement } from "../placement.ts";
import { DAY_SECONDS } from "../recurrence/civil.ts";
import type { CompiledRule } from "../recurrence/compiled.ts";
import { isInstantOf } from "../recurrence/next.ts";
import { date } from "../recurrence/words.ts";
import { offsetAt, type Zone } from "../recurrence/zone.ts";
import type { ZoneSource } from "../recurrence/zone-source.ts";
import type { Calendar } from "./compile.ts";
import type { CalendarUse } from "./definition.ts";
import { instantOfWall, instantsOfWall, instantsWithin, type Member, membersOf, skippedUpTo, wallOf } from "./wall.ts";

/** A schedule's rule with the calendars it uses, each as it stands. */
export type ScheduleCalendars = {
  readonly rule: CompiledRule;
  readonly members: readonly Member[];
  readonly uses: readonly { readonly calendar: Calendar; readonly onExcluded: CalendarUse["onExcluded"] }[];
  readonly zones: ZoneSource;
  readonly startAt: Instant;
  readonly endAt: Instant;
};

/** Where an instant comes to be due, or why not; `label` says in words what a calendar did to it. */
export type Placed = { readonly placement: Placement; readonly label?: string };

/** How far a shift looks for a business day; beyond, the instant is skipped. */
const FURTHEST_DAYS = 366;

/** `calendars` are those the definition names, in its order. */
export function useCalendars(
  definition: Pick<Definition, "startAt" | "endAt" | "calendars">,
  rule: CompiledRule,
  calendars: readonly Calendar[],
  zones: ZoneSource,
): ScheduleCalendars {
  return {
    rule,
    members: membersOf(rule),
    uses: (definition.calendars ?? []).map((use, n) => ({ calendar: calendars[n]!, onExcluded: use.onExcluded })),
    zones,
    startAt: definition.startAt === undefined ? Number.NEGATIVE_INFINITY : Date.parse(definition.startAt),
    endAt: definition.endAt === undefined ? Number.POSITIVE_INFINITY : Date.parse(definition.endAt),
  };
}

/**
 * What calendars make of a nominal instant (whole epoch ms), judged by its local date in the zone of the rule (of the
 * member that names it, for anyOf); a rule of elapsed time is judged in each calendar's own zone. The first calendar in
 * the list that excludes the date decides. A shift keeps the wall time and takes the next day that no calendar of the
 * list excludes. If another run is due at just that instant, the rule's own or one that was shifted there from an
 * earlier instant, this one is merged into it. `hasRun` says of such an earlier instant of the rule whether it has a run.
 */
export function placeByCalendars(
  calendars: ScheduleCalendars,
  nominalAt: Instant,
  hasRun: (earlierAt: Instant) => boolean,
): Placed {
  const member = memberOf(calendars, nominalAt);
  const found = exclusionOf(calendars, member, nominalAt);
  if (found === undefined) return { placement: { kind: "due", dueAt: nominalAt } };
  const excluded: Placed = {
    placement: { kind: "skip", reason: "calendar" },
    label: `calendar: excluded by ${found.reason}`,
  };
  if (found.onExcluded === "exclude") return excluded;
  const dueAt = shift(calendars, member, nominalAt, found.zone);
  if (dueAt === undefined) {
    return { ...excluded, label: `${excluded.label}; no business day within ${FURTHEST_DAYS} days` };
  }
  const merged = (into: string): Placed => ({
    placement: { kind: "skip", reason: "calendar-merged" },
    label: `calendar: moved from ${date(found.day)} by ${found.reason}, merged into ${into}`,
  });
  // It may be excluded all the same, where it is another member's and so another zone's date.
  if (isOwnInstant(calendars, dueAt) && exclusionOf(calendars, memberOf(calendars, dueAt), dueAt) === undefined) {
    return merged("the run of that day");
  }
  const earlierAt = earlierShiftedTo(calendars, nominalAt, dueAt, hasRun);
  if (earlierAt !== undefined) return merged("the run moved there before");
  return {
    placement: { kind: "due", dueAt },
    label: `calendar: moved from ${date(found.day)} by ${found.reason}`,
  };
}

/** The rule that names the instant; where several do, the first. */
function memberOf({ members }: ScheduleCalendars, at: Instant): Member {
  if (members.length === 1) return members[0]!;
  return members.find((member) => isInstantOf(member.rule, at)) ?? members[0]!;
}

function isOwnInstant({ rule, startAt, endAt }: ScheduleCalendars, at: Instant): boolean {
  return at >= startAt && at < endAt && isInstantOf(rule, at);
}

type Exclusion = { reason: string; onExcluded: CalendarUse["onExcluded"]; zone: Zone; day: number };

function exclusionOf(calendars: ScheduleCalendars, member: Member, at: Instant): Exclusion | undefined {
  const t = Math.floor(at / 1000);
  for (const { calendar, onExcluded } of calendars.uses) {
    const zone = zoneOf(calendars, member, calendar);
    const day = Math.floor((t + offsetAt(zone, t)) / DAY_SECONDS);
    const reason = calendar.reasonOn(day);
    if (reason !== undefined) return { reason, onExcluded, zone, day };
  }
  return undefined;
}

/** The same wall time on the next business day; undefined where there is none near enough. */
function shift(calendars: ScheduleCalendars, member: Member, nominalAt: Instant, zone: Zone): Instant | undefined {
  const wall = wallOf(member, zone, nominalAt);
  const ms = nominalAt - Math.floor(nominalAt / 1000) * 1000;
  const judging = calendars.uses.filter((use) => zoneOf(calendars, member, use.calendar) === zone);
  for (let days = 1; days <= FURTHEST_DAYS; days++) {
    const shifted = wall + days * DAY_SECONDS;
    const day = Math.floor(shifted / DAY_SECONDS);
    if (judging.some((use) => use.calendar.reasonOn(day) !== undefined)) continue;
    const dueAt = instantOfWall(zone, shifted, ms);
    // Its date may be another one, in the zone of another calendar or where a zone left a whole day out.
    if (dueAt > nominalAt && exclusionOf(calendars, member, dueAt) === undefined) return dueAt;
  }
  return undefined;
}

/**
 * An instant of the rule before `nominalAt` that is shifted to `dueAt` too, and has a run: it shows the same wall time on
 * one of the excluded days before, so those are asked and not every instant.
 */
function earlierShiftedTo(
  calendars: ScheduleCalendars,
  nominalAt: Instant,
  dueAt: Instant,
  hasRun: (earlierAt: Instant) => boolean,
): Instant | undefined {
  for (const member of calendars.members) {
    for (const zone of zonesOf(calendars, member)) {
      const walls = new Set([wallOf(member, zone, nominalAt), wallOf(member, zone, dueAt)].map(timeOfDay));
      const dueDay = Math.floor(wallOf(member, zone, dueAt) / DAY_SECONDS);
      const ms = nominalAt - Math.floor(nominalAt / 1000) * 1000;
      // Every time that a gap skips comes to its end.
      const skipped = skippedUpTo(zone, dueAt);
      for (let days = 1; days <= FURTHEST_DAYS; days++) {
        const candidates = [...walls].flatMap((time) => instantsOfWall(zone, (dueDay - days) * DAY_SECONDS + time, ms));
        if (skipped !== undefined) candidates.push(...instantsWithin(member.rule, zone, skipped, days));
        // A business day before `dueAt`: what is excluded before it was not shifted over it.
        if (candidates.every((at) => exclusionOf(calendars, member, at) === undefined)) break;
        const found = candidates.find(
          (at) => at < nominalAt && isShiftedTo(calendars, member, at, dueAt) && hasRun(at),
        );
        if (found !== undefined) return found;
      }
    }
  }
  return undefined;
}

function isShiftedTo(calendars: ScheduleCalendars, member: Member, at: Instant, dueAt: Instant): boolean {
  if (!isOwnInstant(calendars, at) || memberOf(calendars, at) !== member) return false;
  const found = exclusionOf(calendars, member, at);
  return found?.onExcluded === "shift" && shift(calendars, member, at, found.zone) === dueAt;
}

/** In whose zone an instant of the member has the date that the calendar judges. */
function zoneOf({ zones }: ScheduleCalendars, member: Member, calendar: Calendar): Zone {
  return member.zone ?? zones.findZone(calendar.zone) ?? zones.findZone("UTC")!;
}

/** Whose clocks a shift of this member's instants may keep to. */
function zonesOf(calendars: ScheduleCalendars, member: Member): Set<Zone> {
  const shifting = calendars.uses.filter((use) => use.onExcluded === "shift");
  return new Set(shifting.map((use) => zoneOf(calendars, member, use.calendar)));
}

function timeOfDay(wall: number): number {
  return wall - Math.floor(wall / DAY_SECONDS) * DAY_SECONDS;
}

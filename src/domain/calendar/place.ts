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
import { type Effort, type OpenDays, ZoneDays } from "./days.ts";
import type { CalendarUse } from "./definition.ts";
import { instantOfWall, instantsOfWall, instantsWithin, type Member, membersOf, skippedUpTo, wallOf } from "./wall.ts";

/** A schedule's rule with the calendars it uses, each as it stands; it remembers which days were looked at. */
export type ScheduleCalendars = {
  readonly rule: CompiledRule;
  readonly members: readonly Member[];
  readonly uses: readonly { readonly calendar: Calendar; readonly onExcluded: CalendarUse["onExcluded"] }[];
  readonly zones: ZoneSource;
  readonly startAt: Instant;
  readonly endAt: Instant;
  /** By the zone of a member. */
  readonly days: Map<Zone | undefined, readonly ZoneDays[]>;
  readonly effort: Effort;
};

/**
 * Where an instant comes to be due, or why not; `label` says in words what a calendar did to it. `looks`: days and earlier
 * instants that had to be looked at for it.
 */
export type Placed = { readonly placement: Placement; readonly label?: string; readonly looks?: number };

/** Whether an earlier instant of the rule has a run; undefined: that is not known yet. */
type HasRun = (earlierAt: Instant) => boolean | undefined;
/** Is told which earlier instants to look up. */
type Ask = (earlierAts: readonly Instant[]) => void;

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
    days: new Map(),
    effort: { looks: 0 },
  };
}

/**
 * What calendars make of a nominal instant (whole epoch ms), judged by its local date in the zone of the rule (of the
 * member that names it, for anyOf); a rule of elapsed time is judged in each calendar's own zone. The first calendar in
 * the list that excludes the date decides. A shift keeps the wall time and takes the next day that no calendar of the
 * list excludes. If another run is due at just that instant, the rule's own or one that was shifted there from an
 * earlier instant, this one is merged into it. `hasRun` says of such an earlier instant of the rule whether it has a run.
 * Where that is not known, `ask` is told, the instant is taken to be merged, and it must be placed anew once that is
 * known. First the earliest instant is asked for, since that is the one that has the run as a rule; then all others at once.
 */
export function placeByCalendars(
  calendars: ScheduleCalendars,
  nominalAt: Instant,
  hasRun: HasRun,
  ask: Ask = () => {},
): Placed {
  const before = calendars.effort.looks;
  const placed = place(calendars, nominalAt, hasRun, ask);
  return { ...placed, looks: calendars.effort.looks - before };
}

function place(calendars: ScheduleCalendars, nominalAt: Instant, hasRun: HasRun, ask: Ask): Placed {
  const member = memberOf(calendars, nominalAt);
  const found = exclusionOf(calendars, member, nominalAt);
  if (found === undefined) return { placement: { kind: "due", dueAt: nominalAt } };
  const excluded: Placed = {
    placement: { kind: "skip", reason: "calendar" },
    label: `calendar: excluded by ${found.reason}`,
  };
  if (calendars.uses[found.use]!.onExcluded === "exclude") return excluded;
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
  if (isTakenBefore(calendars, nominalAt, dueAt, hasRun, ask)) return merged("the run moved there before");
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

type Exclusion = { reason: string; use: number; zone: Zone; day: number };

function exclusionOf(calendars: ScheduleCalendars, member: Member, at: Instant): Exclusion | undefined {
  const t = Math.floor(at / 1000);
  let first: Exclusion | undefined;
  for (const days of daysOf(calendars, member)) {
    const day = Math.floor((t + offsetAt(days.zone, t)) / DAY_SECONDS);
    const found = days.exclusionOn(day);
    if (found !== undefined && (first === undefined || found.use < first.use)) {
      first = { reason: found.reason, use: found.use, zone: days.zone, day };
    }
  }
  return first;
}

/** The same wall time on the next business day; undefined where there is none near enough. */
function shift(calendars: ScheduleCalendars, member: Member, nominalAt: Instant, zone: Zone): Instant | undefined {
  const wall = wallOf(member, zone, nominalAt);
  const ms = nominalAt - Math.floor(nominalAt / 1000) * 1000;
  const from = Math.floor(wall / DAY_SECONDS);
  const time = timeOfDay(wall);
  const open = openDaysOf(calendars, member, zone, time);
  for (let day: number | undefined = from; ; ) {
    day = open.after(day, from + FURTHEST_DAYS);
    if (day === undefined) return undefined;
    const dueAt = instantOfWall(zone, day * DAY_SECONDS + time, ms);
    // Its date may be another one where a zone left a whole day out.
    if (dueAt > nominalAt && exclusionOf(calendars, member, dueAt) === undefined) return dueAt;
    calendars.effort.looks++;
  }
}

/** Days on which a member's instant may be due that keeps to the time of day (seconds) in this zone. */
function openDaysOf(calendars: ScheduleCalendars, member: Member, zone: Zone, time: number): OpenDays {
  const all = daysOf(calendars, member);
  const own = all.find((days) => days.zone === zone)!;
  if (all.length === 1) return own.open;
  // Its date may be another one in the zone of another calendar.
  return own.openAt(time, (day) => {
    calendars.effort.looks++;
    return exclusionOf(calendars, member, instantOfWall(zone, day * DAY_SECONDS + time, 0)) === undefined;
  });
}

/**
 * Whether an instant of the rule before `nominalAt` is shifted to `dueAt` too, and has a run: it shows the same wall time
 * on one of the excluded days before, so those are looked at and not every instant.
 */
function isTakenBefore(
  calendars: ScheduleCalendars,
  nominalAt: Instant,
  dueAt: Instant,
  hasRun: HasRun,
  ask: Ask,
): boolean {
  const unknown: Instant[] = [];
  let knowsOfNone = false;
  for (const at of earlierShiftedTo(calendars, nominalAt, dueAt)) {
    const answer = hasRun(at);
    if (answer === true) return true;
    if (answer === undefined) unknown.push(at);
    else knowsOfNone = true;
  }
  if (unknown.length === 0) return false;
  ask(knowsOfNone ? unknown : [Math.min(...unknown)]);
  return true;
}

/** The instants of the rule before `nominalAt` that are shifted to `dueAt` too. */
function* earlierShiftedTo(calendars: ScheduleCalendars, nominalAt: Instant, dueAt: Instant): Generator<Instant> {
  const ms = nominalAt - Math.floor(nominalAt / 1000) * 1000;
  for (const member of calendars.members) {
    for (const zone of zonesOf(calendars, member)) {
      const walls = new Set([wallOf(member, zone, nominalAt), wallOf(member, zone, dueAt)].map(timeOfDay));
      const dueDay = Math.floor(wallOf(member, zone, dueAt) / DAY_SECONDS);
      // Every time that a gap skips comes to its end.
      const skipped = skippedUpTo(zone, dueAt);
      for (let days = 1; days <= FURTHEST_DAYS; days++) {
        const candidates: Instant[] = [];
        for (const time of walls) candidates.push(...instantsOfWall(zone, (dueDay - days) * DAY_SECONDS + time, ms));
        if (skipped !== undefined) candidates.push(...instantsWithin(member.rule, zone, skipped, days));
        calendars.effort.looks += candidates.length;
        // A business day before `dueAt`: what is excluded before it was not shifted over it.
        if (candidates.every((at) => exclusionOf(calendars, member, at) === undefined)) break;
        for (const at of candidates) if (at < nominalAt && isShiftedTo(calendars, member, at, dueAt)) yield at;
      }
    }
  }
}

function isShiftedTo(calendars: ScheduleCalendars, member: Member, at: Instant, dueAt: Instant): boolean {
  const found = exclusionOf(calendars, member, at);
  if (found === undefined || calendars.uses[found.use]!.onExcluded !== "shift") return false;
  if (shift(calendars, member, at, found.zone) !== dueAt) return false;
  return isOwnInstant(calendars, at) && memberOf(calendars, at) === member;
}

/** The days that calendars exclude of a member's instants, by the zones they judge in. */
function daysOf(calendars: ScheduleCalendars, member: Member): readonly ZoneDays[] {
  const known = calendars.days.get(member.zone);
  if (known !== undefined) return known;
  const byZone = new Map<Zone, Map<number, Calendar>>();
  for (const [use, { calendar }] of calendars.uses.entries()) {
    const zone = zoneOf(calendars, member, calendar);
    byZone.set(zone, (byZone.get(zone) ?? new Map<number, Calendar>()).set(use, calendar));
  }
  const days = [...byZone].map(([zone, judging]) => new ZoneDays(zone, judging, calendars.effort));
  calendars.days.set(member.zone, days);
  return days;
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

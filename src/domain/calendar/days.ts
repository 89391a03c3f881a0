import type { Zone } from "../recurrence/zone.ts";
import type { Calendar } from "./compile.ts";

/** How often a calendar was asked for a day, or an earlier instant was looked at: what placing an instant costs. */
export type Effort = { looks: number };

/** Why a day is excluded, and by which calendar: its place in the schedule's list. */
type Excluded = { readonly use: number; readonly reason: string };

/** More days are not remembered at once; past it everything is looked at anew. */
const KEPT_DAYS = 20_000;
/** Times of day whose days are remembered, where several zones judge: each has some hundred days. */
const KEPT_TIMES = 50;

/** The days of those calendars of a schedule that judge in one zone; a calendar is asked for a day once. */
export class ZoneDays {
  readonly zone: Zone;
  /** Days that none of these calendars excludes. */
  readonly open: OpenDays;
  readonly #calendars: ReadonlyMap<number, Calendar>;
  readonly #effort: Effort;
  readonly #seen = new Map<number, Excluded | null>();
  readonly #openAt = new Map<number, OpenDays>();

  /** `calendars` by their places in the schedule's list, in its order. */
  constructor(zone: Zone, calendars: ReadonlyMap<number, Calendar>, effort: Effort) {
    this.zone = zone;
    this.#calendars = calendars;
    this.#effort = effort;
    this.open = new OpenDays((day) => this.exclusionOn(day) === undefined);
  }

  /** By the first of these calendars that excludes the day; undefined: none does. */
  exclusionOn(day: number): Excluded | undefined {
    let known = this.#seen.get(day);
    if (known === undefined) {
      known = this.#look(day);
      if (this.#seen.size >= KEPT_DAYS) this.#seen.clear();
      this.#seen.set(day, known);
    }
    return known ?? undefined;
  }

  /** Days that no calendar of any zone excludes at this time of day (seconds), as `isOpen` says. */
  openAt(time: number, isOpen: (day: number) => boolean): OpenDays {
    let known = this.#openAt.get(time);
    if (known === undefined) {
      known = new OpenDays((day) => this.exclusionOn(day) === undefined && isOpen(day));
      if (this.#openAt.size >= KEPT_TIMES) this.#openAt.clear();
      this.#openAt.set(time, known);
    }
    return known;
  }

  #look(day: number): Excluded | null {
    for (const [use, calendar] of this.#calendars) {
      this.#effort.looks++;
      const reason = calendar.reasonOn(day);
      if (reason !== undefined) return { use, reason };
    }
    return null;
  }
}

/** Finds the next open day; a closed stretch is walked once, and then jumped over from wherever in it. */
export class OpenDays {
  readonly #isOpen: (day: number) => boolean;
  /** From a closed day to a later one with only closed days between; from an open day to itself. */
  readonly #jumps = new Map<number, number>();

  constructor(isOpen: (day: number) => boolean) {
    this.#isOpen = isOpen;
  }

  /** The first open day after `day`, up to `lastDay`; undefined: there is none. */
  after(day: number, lastDay: number): number | undefined {
    const walked: number[] = [];
    let at = day + 1;
    while (at <= lastDay) {
      const next = this.#jumps.get(at) ?? this.#look(at);
      if (next === at) break;
      walked.push(at);
      at = next;
    }
    for (const one of walked) this.#jumps.set(one, at);
    return at <= lastDay ? at : undefined;
  }

  #look(day: number): number {
    if (this.#jumps.size >= KEPT_DAYS) this.#jumps.clear();
    const next = this.#isOpen(day) ? day : day + 1;
    this.#jumps.set(day, next);
    return next;
  }
}

/** Touches and omissions in plain English. */
import { DAY_SECONDS } from "../civil.ts";
import { date, list, two } from "../words.ts";
import type { SkippedTimes } from "./gaps.ts";
import type { Omission } from "./omitted.ts";
import type { Touch } from "./touches.ts";

export const LABEL_KINDS = ["gap", "overlap", "clock", "calendar", "window"] as const;

/** What touched an instant: `clock` is a change of offset since the instant before, the rest moved or repeated it. */
export type Label = { readonly kind: (typeof LABEL_KINDS)[number]; readonly text: string };

export function labelOf(touch: Touch): Label {
  const { kind, wall } = touch;
  if (kind === "overlap") {
    const often = touch.passes === 2 ? "twice" : `${touch.passes} times`;
    const runs =
      touch.policy === "each"
        ? `and it runs each time; this is time ${touch.pass}`
        : `and it runs the ${touch.policy} time only`;
    return { kind, text: `${timeOf(wall)} comes ${often} on ${dateOfWall(wall)}, ${runs}` };
  }
  const { walls } = touch.skipped;
  const isSameDay = walls.every((one) => dateOfWall(one) === dateOfWall(wall));
  const lands = isSameDay ? timeOf(wall) : `${dateOfWall(wall)} ${timeOf(wall)}`;
  const why = touch.policy === "first" ? "the first instant after the gap" : "as much later as the clocks move";
  const verb = walls.length > 1 || touch.skipped.hasMore ? "do" : "does";
  const day = isSameDay ? " that day" : "";
  return { kind, text: `${timesOf(touch.skipped, !isSameDay)} ${verb} not exist${day}; runs at ${lands}, ${why}` };
}

/** Such as "02:30 does not exist on 2026-03-08, and is left out". */
export function noteOf({ skipped, because }: Omission): string {
  const days = [...new Set(skipped.walls.map(dateOfWall))];
  const isOne = skipped.walls.length === 1 && !skipped.hasMore;
  const left = because === "skip" ? "left out, as gap: skip asks" : "left out: the clock never shows";
  const them = because === "skip" ? "" : isOne ? " it" : " them";
  const when = days.length === 1 ? ` on ${days[0]}` : "";
  return `${timesOf(skipped, days.length > 1)} ${isOne ? "does" : "do"} not exist${when}, and ${isOne ? "is" : "are"} ${left}${them}`;
}

function timesOf({ walls, hasMore }: SkippedTimes, withDates: boolean): string {
  const texts = walls.map((wall) => (withDates ? `${dateOfWall(wall)} ${timeOf(wall)}` : timeOf(wall)));
  return hasMore ? `${texts.join(", ")} and more` : list(texts);
}

function timeOf(wall: number): string {
  const second = ((Math.floor(wall) % DAY_SECONDS) + DAY_SECONDS) % DAY_SECONDS;
  const parts = [Math.floor(second / 3600), Math.floor(second / 60) % 60, ...(second % 60 === 0 ? [] : [second % 60])];
  return parts.map(two).join(":");
}

function dateOfWall(wall: number): string {
  return date(Math.floor(wall / DAY_SECONDS));
}

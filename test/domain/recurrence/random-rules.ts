/** Random cron rules, each with a literal predicate of its own, and moments near the clock changes of odd zones. */
import fc from "fast-check";
import { makeZone, segmentAt, type Zone } from "../../../src/domain/recurrence/zone.ts";
import type { Policy, Shown } from "./oracle.ts";
import { zones } from "./support.ts";

/** Zones whose clocks did odd things, and when they did them. Whole minutes, as every zone since 1972. */
const ODD_ZONES = [
  "America/New_York",
  "Europe/Dublin",
  "Africa/Casablanca",
  "Africa/Cairo",
  "America/Nuuk",
  "America/Santiago",
  "America/Sao_Paulo",
  "America/St_Johns",
  "America/Caracas",
  "Antarctica/Troll",
  "Antarctica/Casey",
  "Asia/Beirut",
  "Asia/Gaza",
  "Asia/Kathmandu",
  "Australia/Lord_Howe",
  "Pacific/Apia",
  "Pacific/Chatham",
  "Pacific/Kiritimati",
] as const;
const SINCE = Date.parse("1975-01-01T00:00:00Z") / 1000;
const UNTIL = Date.parse("2045-01-01T00:00:00Z") / 1000;

type Field = { text: string; holds: (value: number) => boolean };

const STAR: Field = { text: "*", holds: () => true };

function field(min: number, max: number): fc.Arbitrary<Field> {
  const value = fc.integer({ min, max });
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant(STAR) },
    { weight: 3, arbitrary: value.map((one) => ({ text: `${one}`, holds: (v: number) => v === one })) },
    {
      weight: 2,
      arbitrary: fc
        .integer({ min: 1, max })
        .map((step) => ({ text: `*/${step}`, holds: (v: number) => (v - min) % step === 0 })),
    },
    {
      weight: 1,
      arbitrary: fc.tuple(value, value).map(([a, b]) => {
        const [low, high] = [Math.min(a, b), Math.max(a, b)];
        return { text: `${low}-${high}`, holds: (v: number) => v >= low && v <= high };
      }),
    },
    {
      weight: 1,
      arbitrary: fc
        .uniqueArray(value, { minLength: 1, maxLength: 4 })
        .map((list) => ({ text: list.join(","), holds: (v: number) => list.includes(v) })),
    },
  );
}

/** Mostly open, so that most rules have something due in the few days that a test looks at. */
const mostlyOpen = (one: fc.Arbitrary<Field>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(STAR) }, { weight: 1, arbitrary: one });

export const expression = fc
  .tuple(field(0, 59), field(0, 23), mostlyOpen(field(1, 31)), mostlyOpen(field(1, 12)), mostlyOpen(field(0, 6)))
  .map(([minute, hour, day, month, weekday]) => {
    const isStarred = day.text.startsWith("*") || weekday.text.startsWith("*");
    return {
      text: [minute, hour, day, month, weekday].map((one) => one.text).join(" "),
      timing: (minute.text + hour.text).includes("*") ? ("shown" as const) : ("fixed" as const),
      matches: (at: Shown) =>
        minute.holds(at.minute) &&
        hour.holds(at.hour) &&
        month.holds(at.month) &&
        (isStarred ? day.holds(at.day) && weekday.holds(at.weekday) : day.holds(at.day) || weekday.holds(at.weekday)),
    };
  });

export const policy = fc.record<Policy>({
  gap: fc.constantFrom("first", "shift", "skip"),
  overlap: fc.constantFrom("first", "last", "both"),
});

/** A whole minute near some clock change of the zone. */
function momentNearChange(name: string): fc.Arbitrary<number> {
  const zone = zones.findZone(name)!;
  segmentAt(zone, UNTIL);
  const changes = zone.at.filter((at) => at > SINCE && at < UNTIL);
  return fc
    .tuple(fc.constantFrom(...changes), fc.integer({ min: -2000, max: 2000 }))
    .map(([change, minutes]) => Math.floor(change / 60) * 60 + minutes * 60);
}

export const zoneAndMoment = fc
  .constantFrom(...ODD_ZONES)
  .chain((zone) => momentNearChange(zone).map((from) => ({ zone, from })));

export const quarterHours = (min: number, max: number) => fc.integer({ min, max }).map((n) => n * 900);

/** When the clocks of an odd zone begin to jump (epoch seconds). */
export const ODD_START = Date.parse("2026-01-01T00:00:00Z") / 1000;

/** Changes of a zone stranger than any on earth: clocks jump again before the last jump is over. Seconds. */
export const oddJumps = fc.array(fc.record({ after: quarterHours(1, 120), offset: quarterHours(-48, 48) }), {
  maxLength: 12,
});

/** The zone of these jumps; undefined where a time is first skipped and then shown after all, which has no settled meaning. */
export function oddZone(jumps: readonly { after: number; offset: number }[]): Zone | undefined {
  let at = ODD_START;
  const transitions = jumps.map(({ after, offset }) => {
    at += after;
    return { at, offset };
  });
  const zone = makeZone("Odd/Zone", 0, transitions, { standardOffset: 0 });
  const starts = zone.at.map((one, k) => one + zone.offsets[k]!);
  const isSkip = (k: number) => starts[k]! > zone.highEnds[k]!;
  const isSettled = starts.every((one, k) => k === 0 || !isSkip(k) || starts.slice(k).every((later) => later >= one));
  return isSettled ? zone : undefined;
}

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type CompiledRule, compileRule } from "../../../src/domain/recurrence/compile.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import { labelOf, noteOf } from "../../../src/domain/recurrence/touched/label.ts";
import { omittedBetween } from "../../../src/domain/recurrence/touched/omitted.ts";
import { touchesOf } from "../../../src/domain/recurrence/touched/touches.ts";
import { offsetAt, type Zone } from "../../../src/domain/recurrence/zone.ts";
import { type Appointment, appointments } from "./oracle.ts";
import { expression, ODD_START, oddJumps, oddZone, policy, quarterHours, zoneAndMoment } from "./random-rules.ts";
import { compiled, cron, zones } from "./support.ts";

/** The labels of the next instants, each with its time of day in UTC. */
function labels(rule: Rule, from: string, count = 3): string[] {
  const ready = compiled(rule);
  const found: string[] = [];
  let at: number | null = Date.parse(from);
  for (let n = 0; n < count; n += 1) {
    at = nextAfter(ready, at);
    if (at === null) break;
    const texts = touchesOf(ready, at).map((touch) => labelOf(touch).text);
    found.push([new Date(at).toISOString().slice(0, 16), ...texts].join(" | "));
  }
  return found;
}

function notes(rule: Rule, from: string, to: string): string[] {
  return omittedBetween(compiled(rule), Date.parse(from), Date.parse(to), 10).map(noteOf);
}

const NEW_YORK = "America/New_York";

describe("an instant that a gap touched", () => {
  it("says which time does not exist, and where it went", () => {
    expect(labels(cron("30 2 * * *", NEW_YORK), "2026-03-07T12:00:00Z")).toEqual([
      "2026-03-08T07:00 | 02:30 does not exist that day; runs at 03:00, the first instant after the gap",
      "2026-03-09T06:30",
      "2026-03-10T06:30",
    ]);
    expect(labels(cron("30 2 * * *", NEW_YORK, { gap: "shift" }), "2026-03-07T12:00:00Z", 1)).toEqual([
      "2026-03-08T07:30 | 02:30 does not exist that day; runs at 03:30, as much later as the clocks move",
    ]);
  });

  it("of half an hour, of a day, at midnight", () => {
    expect(labels(cron("15 2 * * *", "Australia/Lord_Howe"), "2026-10-03T00:00:00Z", 1)).toEqual([
      "2026-10-03T15:30 | 02:15 does not exist that day; runs at 02:30, the first instant after the gap",
    ]);
    expect(labels(cron("0 9,17 * * *", "Pacific/Apia"), "2011-12-30T04:00:00Z", 2)).toEqual([
      "2011-12-30T10:00 | 2011-12-30 09:00 and 2011-12-30 17:00 do not exist; runs at 2011-12-31 00:00, the first instant after the gap",
      "2011-12-30T19:00",
    ]);
    expect(labels(cron("0 0 * * *", "Africa/Cairo"), "2026-04-23T12:00:00Z", 1)).toEqual([
      "2026-04-23T22:00 | 00:00 does not exist that day; runs at 01:00, the first instant after the gap",
    ]);
  });

  it("names no more than three of many times", () => {
    expect(labels(cron("0,10,20,30,40,50 2 * * *", NEW_YORK), "2026-03-08T06:00:00Z", 1)[0]).toContain(
      "02:00, 02:10, 02:20 and more do not exist that day; runs at 03:00",
    );
  });

  it("that also is an appointment of its own keeps one label", () => {
    expect(labels(cron("30 2,3 * * *", NEW_YORK, { gap: "shift" }), "2026-03-08T06:00:00Z", 1)[0]).toMatch(
      /^2026-03-08T07:30 \| 02:30 does not exist/,
    );
  });

  it("is named for a single local time too", () => {
    const at = ["2026-03-08T02:30", "2026-11-01T01:30", "2026-12-01T09:00:00.5"];
    expect(labels({ kind: "dates", at, zone: NEW_YORK }, "2026-01-01T00:00:00Z")).toEqual([
      "2026-03-08T07:00 | 02:30 does not exist that day; runs at 03:00, the first instant after the gap",
      "2026-11-01T05:30 | 01:30 comes twice on 2026-11-01, and it runs the first time only",
      "2026-12-01T14:00",
    ]);
  });
});

describe("an instant that an overlap touched", () => {
  it.each([
    [undefined, ["2026-11-01T05:30 | 01:30 comes twice on 2026-11-01, and it runs the first time only"]],
    ["last", ["2026-11-01T06:30 | 01:30 comes twice on 2026-11-01, and it runs the last time only"]],
    [
      "both",
      [
        "2026-11-01T05:30 | 01:30 comes twice on 2026-11-01, and it runs each time; this is time 1",
        "2026-11-01T06:30 | 01:30 comes twice on 2026-11-01, and it runs each time; this is time 2",
      ],
    ],
  ] as const)("overlap: %s", (overlap, expected) => {
    const rule = cron("30 1 * * *", NEW_YORK, overlap === undefined ? {} : { overlap });
    expect(labels(rule, "2026-11-01T00:00:00Z", expected.length)).toEqual(expected);
  });

  it("of a rule that follows the clock on the wall, in both passes of the repeated hour", () => {
    expect(labels(cron("*/30 * * * *", NEW_YORK), "2026-11-01T04:45:00Z", 5)).toEqual([
      "2026-11-01T05:00 | 01:00 comes twice on 2026-11-01, and it runs each time; this is time 1",
      "2026-11-01T05:30 | 01:30 comes twice on 2026-11-01, and it runs each time; this is time 1",
      "2026-11-01T06:00 | 01:00 comes twice on 2026-11-01, and it runs each time; this is time 2",
      "2026-11-01T06:30 | 01:30 comes twice on 2026-11-01, and it runs each time; this is time 2",
      "2026-11-01T07:00",
    ]);
  });

  it("of two rules is told once", () => {
    const rules = [cron("30 1 * * *", NEW_YORK), cron("30 1 1 11 *", NEW_YORK), cron("30 5 * * *")];
    expect(labels({ kind: "anyOf", rules }, "2026-11-01T00:00:00Z", 1)).toEqual([
      "2026-11-01T05:30 | 01:30 comes twice on 2026-11-01, and it runs the first time only",
    ]);
  });
});

describe("appointments that nothing stands in for", () => {
  it("are told between the instants", () => {
    const rule = cron("30 2 * * *", NEW_YORK, { gap: "skip" });
    expect(notes(rule, "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z")).toEqual([
      "02:30 does not exist on 2026-03-08, and is left out, as gap: skip asks",
    ]);
    expect(notes(cron("*/15 * * * *", NEW_YORK), "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z")).toEqual([
      "02:00, 02:15, 02:30 and more do not exist on 2026-03-08, and are left out: the clock never shows them",
    ]);
    expect(notes(cron("30 2 * * *", NEW_YORK), "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")).toEqual([]);
    expect(
      notes(cron("30 4 * * *", NEW_YORK, { gap: "skip" }), "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
    ).toEqual([]);
  });
});

describe("against a literal walk, minute by minute", () => {
  const inRealZones = zoneAndMoment.map(({ zone, from }) => ({ zone: zones.findZone(zone)!, from }));
  const inOddZones = fc
    .tuple(oddJumps.map(oddZone), quarterHours(0, 400))
    .filter(([zone]) => zone !== undefined)
    .map(([zone, delay]) => ({ zone: zone!, from: ODD_START + delay - 86_400 }));
  const everywhere = [
    ["zones of the earth", inRealZones],
    ["stranger zones", inOddZones],
  ] as const;

  type Walk = { rule: CompiledRule; zone: Zone; from: number; to: number; walked: Appointment[] };

  /** Compares what is told with two walked days (epoch seconds) of random rules; answers how much was told in all. */
  function compare(places: (typeof everywhere)[number][1], told: (walk: Walk) => number): number {
    let all = 0;
    fc.assert(
      fc.property(expression, policy, places, ({ text, timing, matches }, choice, { zone, from }) => {
        const source = { ...zones, findZone: () => zone };
        const compilation = compileRule(cron(text, zone.name, choice), source);
        if (!compilation.ok) return;
        const to = from + 2 * 86_400;
        const walked = appointments(zone, from, to, matches, timing === "shown" ? "as shown" : choice);
        all += told({ rule: compilation.rule, zone, from, to, walked });
      }),
      { numRuns: 300 },
    );
    return all;
  }

  it.each(everywhere)(
    "a gap or an overlap is told exactly where a wall time was skipped or repeated, in %s",
    (_, places) => {
      const told = compare(places, ({ rule, from, to, walked }) => {
        const expected = new Map<number, Set<string>>();
        for (const one of walked) {
          for (const t of one.due) {
            const kinds = expected.get(t) ?? new Set<string>();
            if (one.shown.length === 0) kinds.add("gap");
            if (one.shown.length > 1) kinds.add("overlap");
            expected.set(t, kinds);
          }
        }
        let count = 0;
        for (const [t, kinds] of expected) {
          if (t <= from || t >= to) continue;
          const found = touchesOf(rule, t * 1000);
          expect([t, found.map((one) => one.kind).sort()]).toEqual([t, [...kinds].sort()]);
          expect(found.every((one) => labelOf(one).text.length < 200)).toBe(true);
          count += found.length;
        }
        return count;
      });
      expect(told).toBeGreaterThan(100);
    },
  );

  it.each(everywhere)(
    "what is left out is told exactly where the clocks jump over it and nothing stands in, in %s",
    (_, places) => {
      const told = compare(places, ({ rule, zone, from, to, walked }) => {
        const lost = new Set(
          walked.filter((one) => one.shown.length === 0 && one.due.length === 0).map((one) => one.wall),
        );
        const expected: { at: number; walls: number[]; hasMore: boolean }[] = [];
        for (let t = from + 60; t <= to; t += 60) {
          const walls: number[] = [];
          for (let wall = t + offsetAt(zone, t - 60); wall < t + offsetAt(zone, t); wall += 60) {
            if (lost.has(wall)) walls.push(wall);
          }
          if (walls.length > 0) expected.push({ at: t * 1000, walls: walls.slice(0, 3), hasMore: walls.length > 3 });
        }
        const found = omittedBetween(rule, from * 1000, to * 1000, 100).map(({ at, skipped }) => ({ at, ...skipped }));
        expect(found).toEqual(expected);
        return found.length;
      });
      expect(told).toBeGreaterThan(5);
    },
  );
});

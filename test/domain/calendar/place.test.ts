import { describe, expect, it } from "vitest";
import { compileCalendar } from "../../../src/domain/calendar/compile.ts";
import { type CalendarUse, calendarDefinitionSchema } from "../../../src/domain/calendar/definition.ts";
import { placeByCalendars, useCalendars } from "../../../src/domain/calendar/place.ts";
import { toLocal } from "../../../src/domain/recurrence/local.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import { compiled, countingLooks, zones } from "../recurrence/support.ts";

type Use = { onExcluded: CalendarUse["onExcluded"]; is?: Record<string, unknown>; name?: string };

function calendarsOf(rule: Rule, uses: readonly Use[], more: { endAt?: string } = {}, source = zones) {
  const ready = compiled(rule, source);
  const named = uses.map((use, n) => ({ name: use.name ?? `calendar-${n + 1}`, onExcluded: use.onExcluded }));
  const calendars = uses.map((use, n) =>
    compileCalendar(named[n]!.name, 1, calendarDefinitionSchema.parse(use.is ?? {})),
  );
  return useCalendars({ calendars: named, ...more }, ready, calendars, source);
}

/** A rule with calendars; answers in words what becomes of an instant. */
function scene(rule: Rule, uses: readonly Use[], more: { endAt?: string } = {}, source = zones) {
  const calendars = calendarsOf(rule, uses, more, source);
  return (at: string, hasRun: (at: number) => boolean = () => true) => {
    const { placement, label } = placeByCalendars(calendars, Date.parse(at), hasRun);
    if (placement.kind === "skip") return label === undefined ? placement.reason : `${placement.reason} | ${label}`;
    const zone = "zone" in rule ? (rule.zone ?? "UTC") : "UTC";
    const local = toLocal(zone, placement.dueAt, zones).slice(0, 19);
    return label === undefined ? local : `${local} | ${label}`;
  };
}

const cron = (expression: string, zone = "Europe/Berlin", more: object = {}): Rule => ({
  kind: "cron",
  expression,
  zone,
  ...more,
});
const DAILY = cron("0 9 * * *");
const NO_WEEKEND = { weekend: [] };

describe("a day that a calendar excludes", () => {
  it("is a weekend day, Saturday and Sunday by default", () => {
    const place = scene(DAILY, [{ onExcluded: "exclude" }]);
    expect(place("2026-10-02T09:00+02:00")).toBe("2026-10-02T09:00:00");
    expect(place("2026-10-03T09:00+02:00")).toBe("calendar | calendar: excluded by weekend (saturday)");
    expect(place("2026-10-04T09:00+02:00")).toBe("calendar | calendar: excluded by weekend (sunday)");
    expect(place("2026-10-05T09:00+02:00")).toBe("2026-10-05T09:00:00");
  });

  it("is Friday or Saturday where the weekend is said to be so, and none where there is no weekend", () => {
    const riyadh = scene(cron("0 9 * * *", "Asia/Riyadh"), [
      { onExcluded: "exclude", is: { weekend: ["friday", "saturday"] } },
    ]);
    expect(riyadh("2026-10-02T09:00+03:00")).toMatch(/^calendar \|/);
    expect(riyadh("2026-10-03T09:00+03:00")).toMatch(/^calendar \|/);
    expect(riyadh("2026-10-04T09:00+03:00")).toBe("2026-10-04T09:00:00");
    expect(scene(DAILY, [{ onExcluded: "exclude", is: NO_WEEKEND }])("2026-10-03T09:00+02:00")).toBe(
      "2026-10-03T09:00:00",
    );
  });

  it("is called by the name of its entry, and by the calendar's where it has none", () => {
    const is = { ...NO_WEEKEND, dates: [{ date: "2026-12-24" }, { date: "2026-12-25", name: "Christmas" }] };
    const place = scene(DAILY, [{ onExcluded: "exclude", is, name: "company-holidays" }]);
    expect(place("2026-12-24T09:00+01:00")).toBe("calendar | calendar: excluded by company-holidays");
    expect(place("2026-12-25T09:00+01:00")).toBe("calendar | calendar: excluded by Christmas");
    expect(place("2027-12-25T09:00+01:00")).toBe("2027-12-25T09:00:00");
  });

  it("comes every year if it is a yearly date, and 29 February in leap years only", () => {
    const is = {
      ...NO_WEEKEND,
      yearly: [
        { date: "02-29", name: "Leap day" },
        { date: "12-25", name: "Christmas" },
      ],
    };
    const place = scene(cron("0 9 * * *", "UTC"), [{ onExcluded: "exclude", is }]);
    for (const year of [2026, 2027, 2100]) expect(place(`${year}-12-25T09:00Z`)).toContain("Christmas");
    expect(place("2028-02-29T09:00Z")).toContain("Leap day");
    expect(place("2027-02-28T09:00Z")).toBe("2027-02-28T09:00:00");
    expect(place("2027-03-01T09:00Z")).toBe("2027-03-01T09:00:00");
  });

  it("lies in a range, over the end of a year too, and overlapping ranges exclude what either does", () => {
    const ranges = [
      { from: "2026-12-28", to: "2027-01-03", name: "Shutdown" },
      { from: "2027-01-02", to: "2027-01-06", name: "Inventory" },
      { from: "2026-12-30", to: "2026-12-31", name: "Inside" },
    ];
    const place = scene(cron("0 9 * * *", "UTC"), [{ onExcluded: "exclude", is: { ...NO_WEEKEND, ranges } }]);
    expect(place("2026-12-27T09:00Z")).toBe("2026-12-27T09:00:00");
    for (const day of ["2026-12-28", "2026-12-31", "2027-01-01", "2027-01-03"]) {
      expect(place(`${day}T09:00Z`)).toContain("excluded by Shutdown");
    }
    for (const day of ["2027-01-04", "2027-01-06"]) expect(place(`${day}T09:00Z`)).toContain("excluded by Inventory");
    expect(place("2027-01-07T09:00Z")).toBe("2027-01-07T09:00:00");
  });

  it("is a date of the rule's zone, whatever the date in UTC is", () => {
    const is = { ...NO_WEEKEND, dates: [{ date: "2026-12-25", name: "Christmas" }] };
    const auckland = scene(cron("0 8 * * *", "Pacific/Auckland"), [{ onExcluded: "exclude", is }]);
    expect(auckland("2026-12-24T19:00Z")).toContain("Christmas"); // 08:00 of the 25th there
    expect(auckland("2026-12-25T19:00Z")).toBe("2026-12-26T08:00:00");
    const angeles = scene(cron("0 20 * * *", "America/Los_Angeles"), [{ onExcluded: "exclude", is }]);
    expect(angeles("2026-12-26T04:00Z")).toContain("Christmas"); // 20:00 of the 25th there
    expect(angeles("2026-12-25T04:00Z")).toBe("2026-12-24T20:00:00");
  });

  it("is a date of the calendar's own zone for a rule of elapsed time, UTC if it has none", () => {
    const rule: Rule = { kind: "interval", everyMs: 3_600_000, anchorAt: "2026-01-01T00:00:00Z" };
    const is = { ...NO_WEEKEND, dates: [{ date: "2026-12-25" }] };
    const utc = scene(rule, [{ onExcluded: "exclude", is }]);
    expect([utc("2026-12-24T23:00Z"), utc("2026-12-25T00:00Z").slice(0, 8)]).toEqual([
      "2026-12-24T23:00:00",
      "calendar",
    ]);
    const tokyo = scene(rule, [{ onExcluded: "exclude", is: { ...is, zone: "Asia/Tokyo" } }]);
    expect(tokyo("2026-12-24T14:00Z")).toBe("2026-12-24T14:00:00");
    expect(tokyo("2026-12-24T15:00Z")).toMatch(/^calendar/);
    expect(tokyo("2026-12-25T15:00Z")).toBe("2026-12-25T15:00:00");
  });

  it("is judged in the zone of the member that names the instant, for anyOf", () => {
    const rule: Rule = {
      kind: "anyOf",
      rules: [cron("0 20 * * *", "America/Los_Angeles"), cron("0 8 * * *", "Pacific/Auckland")] as never,
    };
    const place = scene(rule, [{ onExcluded: "exclude", is: { ...NO_WEEKEND, dates: [{ date: "2026-12-25" }] } }]);
    expect(place("2026-12-26T04:00Z")).toMatch(/^calendar/);
    expect(place("2026-12-24T19:00Z")).toMatch(/^calendar/);
    expect(place("2026-12-25T04:00Z")).toBe("2026-12-25T04:00:00");
    expect(place("2026-12-25T19:00Z")).toBe("2026-12-25T19:00:00");
  });
});

describe("an instant that is shifted", () => {
  const monthly = (is: object = {}) => scene(cron("30 9 1 * *"), [{ onExcluded: "shift", is: is as never }]);

  it("keeps its wall time and takes the next business day", () => {
    expect(monthly()("2026-11-01T09:30+01:00")).toBe(
      "2026-11-02T09:30:00 | calendar: moved from 2026-11-01 by weekend (sunday)",
    );
    const longer = monthly({
      dates: [
        { date: "2027-01-01", name: "New Year" },
        { date: "2027-01-04", name: "Bridge day" },
      ],
    });
    expect(longer("2027-01-01T09:30+01:00")).toBe("2027-01-05T09:30:00 | calendar: moved from 2027-01-01 by New Year");
  });

  it("lands where a gap ends if its time is skipped on that day, and on the first pass if it is repeated", () => {
    // New York skips 02:30 on Sunday 2027-03-14 and repeats 01:30 on Sunday 2026-11-01: Sundays work here, Saturdays do not.
    const is = { weekend: ["saturday"] };
    const gap = scene(cron("30 2 * * 6", "America/New_York"), [{ onExcluded: "shift", is }]);
    expect(gap("2027-03-13T02:30-05:00")).toMatch(/^2027-03-14T03:00:00 \|/);
    const overlap = calendarsOf(cron("30 1 * * 6", "America/New_York"), [{ onExcluded: "shift", is }]);
    expect(placeByCalendars(overlap, Date.parse("2026-10-31T01:30-04:00"), () => true).placement).toEqual({
      kind: "due",
      dueAt: Date.parse("2026-11-01T01:30-04:00"),
    });
  });

  it("stands for the time that its gap skipped: a daily run is not doubled after a clock change", () => {
    for (const gap of [undefined, "shift"] as const) {
      const place = scene(cron("30 2 * * *", "America/New_York", gap === undefined ? {} : { gap }), [
        { onExcluded: "shift" },
      ]);
      // Sunday 2027-03-14, 02:30 does not exist; Monday has a 02:30 of its own.
      const nominal = gap === undefined ? "2027-03-14T03:00-04:00" : "2027-03-14T03:30-04:00";
      expect(place(nominal)).toMatch(/^calendar-merged \|/);
    }
  });

  it("keeps its milliseconds", () => {
    const rule: Rule = { kind: "once", at: "2026-10-03T09:00:00.250", zone: "Europe/Berlin" };
    const calendars = calendarsOf(rule, [{ onExcluded: "shift" }]);
    expect(placeByCalendars(calendars, Date.parse("2026-10-03T09:00:00.250+02:00"), () => true).placement).toEqual({
      kind: "due",
      dueAt: Date.parse("2026-10-05T09:00:00.250+02:00"),
    });
  });

  it("takes a day that no calendar of the list excludes, and the first calendar decides what becomes of it", () => {
    const holiday = { ...NO_WEEKEND, dates: [{ date: "2026-10-05", name: "Holiday" }] };
    const rule = cron("0 9 3 * *");
    const shifting = [{ onExcluded: "shift" }, { onExcluded: "exclude", is: holiday }] as const;
    expect(scene(rule, shifting)("2026-10-03T09:00+02:00")).toMatch(/^2026-10-06T09:00:00/);
    const both = { ...NO_WEEKEND, dates: [{ date: "2026-10-03", name: "Unity" }] };
    const excluding = [{ onExcluded: "exclude", is: both }, { onExcluded: "shift" }] as const;
    expect(scene(rule, excluding)("2026-10-03T09:00+02:00")).toBe("calendar | calendar: excluded by Unity");
    expect(scene(rule, excluding.toReversed())("2026-10-03T09:00+02:00")).toMatch(/^2026-10-05T09:00:00/);
  });

  it("is skipped at once where everything is excluded", () => {
    const every = { weekend: ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"] };
    const long = { ...NO_WEEKEND, ranges: [{ from: "2026-01-01", to: "9999-12-31", name: "Closed for good" }] };
    for (const is of [every, long]) {
      expect(monthly(is)("2026-11-01T09:30+01:00")).toMatch(/^calendar \| .*no business day within 366 days/);
    }
  });

  it("skips the dates that a zone skipped as a whole", () => {
    // Samoa had no 30 December 2011; the 29th and the 31st are excluded here.
    const is = { ...NO_WEEKEND, dates: [{ date: "2011-12-29" }, { date: "2011-12-31" }] };
    const place = scene(cron("0 9 29 12 *", "Pacific/Apia"), [{ onExcluded: "shift", is }]);
    expect(place("2011-12-29T09:00-10:00")).toMatch(/^2012-01-01T09:00:00 \|/);
  });
});

describe("an instant shifted onto one that has a run", () => {
  it("is merged into the rule's own run of that day", () => {
    const place = scene(DAILY, [{ onExcluded: "shift" }]);
    const merged =
      "calendar-merged | calendar: moved from 2026-10-03 by weekend (saturday), merged into the run of that day";
    expect(place("2026-10-03T09:00+02:00")).toBe(merged);
    expect(place("2026-10-04T09:00+02:00")).toMatch(/^calendar-merged/);
    expect(place("2026-10-05T09:00+02:00")).toBe("2026-10-05T09:00:00");
  });

  it("is not merged into an instant that will not be: one beyond the schedule's end", () => {
    const place = scene(DAILY, [{ onExcluded: "shift" }], { endAt: "2026-10-04T00:00:00Z" });
    expect(place("2026-10-03T09:00+02:00")).toMatch(/^2026-10-05T09:00:00/);
  });

  it("is merged into the one that was shifted there before, if that has a run", () => {
    const place = scene(cron("0 9 * * 6,0"), [{ onExcluded: "shift" }]);
    expect(place("2026-10-03T09:00+02:00")).toMatch(/^2026-10-05T09:00:00/);
    expect(place("2026-10-04T09:00+02:00")).toBe(
      "calendar-merged | calendar: moved from 2026-10-04 by weekend (sunday), merged into the run moved there before",
    );
    const asked: number[] = [];
    const noRun = (at: number) => asked.push(at) === 0;
    expect(place("2026-10-04T09:00+02:00", noRun)).toMatch(/^2026-10-05T09:00:00/);
    expect(asked).toEqual([Date.parse("2026-10-03T09:00+02:00")]);
  });

  it("is merged over a long shutdown, once for each time of day", () => {
    const ranges = [{ from: "2026-12-19", to: "2027-01-06", name: "Shutdown" }];
    const is = { ...NO_WEEKEND, ranges };
    const place = scene(cron("0 9,17 * * 1", "UTC"), [{ onExcluded: "shift", is }]);
    expect(place("2026-12-21T09:00Z")).toMatch(/^2027-01-07T09:00:00/);
    expect(place("2026-12-21T17:00Z")).toMatch(/^2027-01-07T17:00:00/);
    expect(place("2027-01-04T09:00Z")).toMatch(/^calendar-merged/);
    expect(place("2027-01-04T17:00Z")).toMatch(/^calendar-merged/);
  });

  it("is merged when a repeated hour shows its time twice", () => {
    // Berlin repeats 02:30 on Sunday 2026-10-25.
    const place = scene(cron("30 2 * * 0", "Europe/Berlin", { overlap: "both" }), [{ onExcluded: "shift" }]);
    expect(place("2026-10-25T02:30+02:00")).toMatch(/^2026-10-26T02:30:00/);
    expect(place("2026-10-25T02:30+01:00")).toMatch(/^calendar-merged/);
  });

  it("is merged where a gap brings two times to one instant", () => {
    // Cairo skips 00:00 to 01:00 of Friday 2027-04-30; Wednesday and Thursday are excluded here.
    const is = { weekend: ["wednesday", "thursday"] };
    const place = scene(cron("30,45 0 * * 3", "Africa/Cairo"), [{ onExcluded: "shift", is }]);
    expect(place("2027-04-28T00:30+02:00")).toMatch(/^2027-04-30T01:00:00/);
    expect(place("2027-04-28T00:45+02:00")).toMatch(/^calendar-merged/);
  });

  it("is merged into another member's, of an anyOf, also in another zone", () => {
    const rule: Rule = {
      kind: "anyOf",
      rules: [cron("0 9 * * 6", "Europe/Berlin"), cron("0 8 * * 0", "Europe/London")] as never,
    };
    const place = scene(rule, [{ onExcluded: "shift" }]);
    expect(place("2026-10-03T09:00+02:00")).toMatch(/^2026-10-05T07:00:00/);
    expect(place("2026-10-04T08:00+01:00")).toMatch(/^calendar-merged/);
  });
});

it("looks for no instant one by one, also for a minutely rule in a long shutdown", () => {
  const counted = countingLooks();
  const ranges = [{ from: "2026-01-01", to: "2026-12-30" }];
  const place = scene(cron("* * * * *", "Europe/Berlin"), [{ onExcluded: "shift", is: { ranges } }], {}, counted.zones);
  for (let n = 0; n < 500; n++) {
    const at = new Date(Date.parse("2026-06-01T00:00Z") + n * 60_000).toISOString();
    expect(place(at), at).toMatch(/^calendar-merged/);
  }
  // Measured: 89 a place. There are 300,000 minutes until the shutdown is over.
  expect(counted.looks()).toBeLessThan(500 * 150);
});

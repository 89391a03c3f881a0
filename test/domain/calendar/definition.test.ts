import { describe, expect, it } from "vitest";
import { calendarDefinitionSchema, calendarUsesSchema } from "../../../src/domain/calendar/definition.ts";

const faultsOf = (schema: typeof calendarDefinitionSchema | typeof calendarUsesSchema, value: unknown) =>
  (schema.safeParse(value).error?.issues ?? []).map((issue) => `${issue.path.join(".")}: ${issue.message}`);
const faults = (value: unknown) => faultsOf(calendarDefinitionSchema, value);

describe("a calendar's definition", () => {
  it("may be empty: weekends, and nothing else", () => {
    expect(calendarDefinitionSchema.parse({})).toEqual({
      weekend: ["saturday", "sunday"],
      dates: [],
      ranges: [],
      yearly: [],
    });
  });

  it("has real dates only", () => {
    for (const date of ["2026-02-29", "2026-04-31", "2026-13-01", "2026-00-10", "2026-01-00"]) {
      expect(faults({ dates: [{ date }] })).toEqual(["dates.0.date: must be a date that exists, such as 2026-12-25"]);
    }
    for (const date of ["26-12-25", "2026-12-25T00:00:00Z", "tomorrow", "2026-12-25 "]) {
      expect(faults({ dates: [{ date }] })).toEqual(["dates.0.date: must be a date such as 2026-12-25"]);
    }
    expect(faults({ dates: [{ date: "2028-02-29" }], yearly: [{ date: "02-29" }] })).toEqual([]);
    expect(faults({ yearly: [{ date: "02-30" }] })).toEqual([
      "yearly.0.date: must be a month and day that exist, such as 12-25",
    ]);
    expect(faults({ yearly: [{ date: "2026-12-25" }] })).toEqual([
      "yearly.0.date: must be month and day such as 12-25",
    ]);
  });

  it("has ranges that run forward, of one day at least", () => {
    expect(faults({ ranges: [{ from: "2026-12-25", to: "2026-12-24" }] })).toEqual([
      "ranges.0.to: must not be before `from`",
    ]);
    expect(faults({ ranges: [{ from: "2026-12-25", to: "2026-12-25" }] })).toEqual([]);
  });

  it("has at most 5,000 entries in all, and each weekend day once", () => {
    const dates = Array.from({ length: 2500 }, () => ({ date: "2026-12-25" }));
    expect(faults({ dates, yearly: dates.map(() => ({ date: "12-25" })) })).toEqual([]);
    expect(faults({ dates, yearly: [...dates, ""].map(() => ({ date: "12-25" })) })).toEqual([
      ": must have at most 5000 dates, ranges and yearly dates together",
    ]);
    expect(faults({ weekend: ["friday", "friday"] })).toEqual(["weekend: must name each day once"]);
  });
});

describe("a schedule's calendars", () => {
  it("are at most eight, each named once", () => {
    const use = (n: number) => ({ name: `calendar-${n}`, onExcluded: "exclude" });
    const uses = Array.from({ length: 9 }, (_, n) => use(n));
    expect(faultsOf(calendarUsesSchema, uses.slice(1))).toEqual([]);
    expect(faultsOf(calendarUsesSchema, uses)).toHaveLength(1);
    expect(faultsOf(calendarUsesSchema, [use(1), { ...use(1), onExcluded: "shift" }])).toEqual([
      ": must name each calendar once",
    ]);
  });
});

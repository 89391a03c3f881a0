import { describe, expect, it } from "vitest";
import { type Placement, windowOffset } from "../../../src/domain/placement.ts";
import { previewOf } from "../../../src/domain/preview/answer.ts";
import { compareBetween, compareNext } from "../../../src/domain/preview/instant-diff.ts";
import { type Timetable, timetableOf } from "../../../src/domain/preview/timetable.ts";
import { upcomingRuns } from "../../../src/domain/preview/upcoming.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import { compiled, cron, zones } from "../recurrence/support.ts";

const at = (text: string) => Date.parse(text);
const short = (instants: readonly number[]) => instants.map((one) => new Date(one).toISOString().slice(0, 16));
const NEW_YORK = "America/New_York";

function timetable(rule: Rule, bounds: { startAt?: string; endAt?: string } = {}): Timetable {
  return timetableOf(compiled(rule), bounds);
}

/** As a calendar that takes some days (UTC) away, or moves them by so many days. */
function withDays(rule: Rule, days: Readonly<Record<string, "exclude" | number>>): Timetable {
  return timetableOf(compiled(rule), {}, (nominalAt) => {
    const found = days[new Date(nominalAt).toISOString().slice(0, 10)];
    if (found === undefined) return { placement: { kind: "due", dueAt: nominalAt } };
    if (found === "exclude") return { placement: { kind: "skip", reason: "calendar" } as Placement, label: "holiday" };
    return { placement: { kind: "due", dueAt: nominalAt + found * 86_400_000 }, label: "moved" };
  });
}

describe("the next runs", () => {
  it("begin at startAt inclusive and end before endAt", () => {
    const bounds = { startAt: "2026-06-02T09:00:00Z", endAt: "2026-06-05T09:00:00Z" };
    const { runs } = upcomingRuns(timetable(cron("0 9 * * *"), bounds), at("2026-01-01T00:00:00Z"), 9);
    expect(short(runs.map((one) => one.at))).toEqual(["2026-06-02T09:00", "2026-06-03T09:00", "2026-06-04T09:00"]);
  });

  it("carry a label where a clock change touched them, and a note for what it left out between them", () => {
    const everyDay = upcomingRuns(timetable(cron("30 2 * * *", NEW_YORK)), at("2026-03-07T00:00:00Z"), 3);
    expect(everyDay.runs.map((one) => one.labels.map((label) => label.kind))).toEqual([[], ["gap"], []]);
    const skip = cron("30 2 * * *", NEW_YORK, { gap: "skip" });
    const skipping = upcomingRuns(timetable(skip), at("2026-03-07T00:00:00Z"), 3);
    expect(short(skipping.runs.map((one) => one.at))).toEqual([
      "2026-03-07T07:30",
      "2026-03-09T06:30",
      "2026-03-10T06:30",
    ]);
    expect(skipping.notes).toEqual([
      {
        kind: "gap",
        at: at("2026-03-08T07:00:00Z"),
        text: "02:30 does not exist on 2026-03-08, and is left out, as gap: skip asks",
        count: 1,
      },
    ]);
  });

  it("leave out what a calendar excludes, with one note for all of a row, and move what it moves", () => {
    const days = { "2026-12-25": "exclude", "2026-12-26": "exclude", "2026-12-28": 1 } as const;
    const { runs, notes } = upcomingRuns(withDays(cron("0 9 * * *"), days), at("2026-12-24T12:00:00Z"), 3);
    expect(short(runs.map((one) => one.dueAt))).toEqual(["2026-12-27T09:00", "2026-12-29T09:00", "2026-12-29T09:00"]);
    expect(short(runs.map((one) => one.at))).toEqual(["2026-12-27T09:00", "2026-12-28T09:00", "2026-12-29T09:00"]);
    expect(runs.map((one) => one.labels)).toEqual([[], [{ kind: "calendar", text: "moved" }], []]);
    expect(notes).toEqual([{ kind: "calendar", at: at("2026-12-25T09:00:00Z"), text: "holiday", count: 2 }]);
  });

  it("are given up where a calendar excludes everything, instead of looking for ever", () => {
    const never = timetableOf(compiled(cron("* * * * *")), {}, () => ({
      placement: { kind: "skip", reason: "calendar" },
    }));
    const { runs, notes } = upcomingRuns(never, 0, 5);
    expect([runs, notes]).toEqual([[], [{ kind: "calendar", at: 60_000, text: "calendar", count: 10_000 }]]);
  });
});

describe("calendars that are costly to look at", () => {
  const from = at("2026-06-01T00:00:00Z");
  const costly = (looks: number) =>
    timetableOf(compiled(cron("* * * * *")), {}, (nominalAt) => ({
      placement: { kind: "due", dueAt: nominalAt },
      looks,
    }));

  it("end a preview early also where every instant runs", () => {
    expect(upcomingRuns(costly(0), from, 100).runs).toHaveLength(100);
    expect(upcomingRuns(costly(10_000), from, 100).runs).toHaveLength(10);
  });

  it("end a comparison early, which says how far it came", () => {
    const diff = compareBetween(costly(10_000), costly(10_000), from, at("2026-06-02T00:00:00Z"));
    expect(diff).toMatchObject({ kept: 10, comparedUntil: from + 11 * 60_000 });
  });
});

describe("a change of rule", () => {
  const from = at("2026-06-01T00:00:00Z");

  it("says which of the next runs stay, vanish and appear, whatever the paces of the two rules", () => {
    const hourly = timetable(cron("0 * * * *"));
    const daily = timetable(cron("0 3 * * *"));
    const diff = compareNext(hourly, daily, from, 3);
    expect(short(diff.stay.map((one) => one.at))).toEqual(["2026-06-01T03:00", "2026-06-02T03:00", "2026-06-03T03:00"]);
    expect(short(diff.vanish)).toEqual(["2026-06-01T01:00", "2026-06-01T02:00"]);
    expect(diff.appear).toEqual([]);
    expect(compareNext(daily, hourly, from, 3)).toMatchObject({ vanish: [], appear: diff.vanish });
  });

  it("is told from a calendar that takes a day away, gives one back, or moves it", () => {
    const rule = cron("0 9 * * *");
    const diff = compareNext(
      withDays(rule, { "2026-06-01": "exclude" }),
      withDays(rule, { "2026-06-02": "exclude", "2026-06-03": 1 }),
      from,
      3,
    );
    expect(short(diff.appear)).toEqual(["2026-06-01T09:00"]);
    expect(short(diff.vanish)).toEqual(["2026-06-02T09:00"]);
    expect(diff.stay[0]).toEqual({
      at: at("2026-06-03T09:00:00Z"),
      movedFrom: at("2026-06-03T09:00:00Z"),
      movedTo: at("2026-06-04T09:00:00Z"),
    });
  });

  it("over a stretch of time counts what is gained, lost and kept", () => {
    const diff = compareBetween(
      timetable(cron("0 9 * * 1-5")),
      timetable(cron("0 9 * * 1,6")),
      from,
      at("2026-07-01T00:00:00Z"),
    );
    expect(diff).toMatchObject({ gained: { count: 4 }, lost: { count: 17 }, kept: 5, moved: { count: 0 } });
    expect(short(diff.gained.first.slice(0, 1))).toEqual(["2026-06-06T09:00"]);
    expect(diff.comparedUntil).toBe(at("2026-07-01T00:00:00Z"));
  });

  it("stops where there is too much to compare, and says how far it came", () => {
    const seconds = timetable(cron("* * * * * *"));
    const diff = compareBetween(seconds, timetable(cron("0 0 1 1 *")), 0, at("1970-02-01T00:00:00Z"), 1000);
    expect(diff).toMatchObject({ lost: { count: 1000, first: { length: 50 } }, comparedUntil: 1_001_000 });
  });
});

describe("a window", () => {
  const rule = compiled(cron("0 9 * * *", NEW_YORK));
  const from = at("2026-06-01T00:00:00Z");
  const ask = (ms: number, scheduleId?: string, rules = rule, expression = "0 9 * * *") =>
    previewOf(
      { rule: cron(expression, NEW_YORK), windowMs: ms },
      timetableOf(rules, {}, undefined, { ms, scheduleId }),
      zones,
      { fromAt: from, count: 2 },
    );

  it("of a new schedule is told as a range, of one with an id as its own place in it", () => {
    const fresh = ask(600_000);
    expect(fresh.description).toBe("At 09:00, America/New_York time; spread over a window of 10 minutes");
    expect(fresh.runs[0]).toMatchObject({
      at: at("2026-06-01T13:00:00Z"),
      dueAt: at("2026-06-01T13:00:00Z"),
      dueBefore: at("2026-06-01T13:10:00Z"),
      labels: [{ kind: "window", text: "starts somewhere in 09:00–09:10, always the same for this schedule" }],
    });
    const id = "0198c0de-0000-7000-8000-000000000001";
    const own = ask(600_000, id).runs;
    const offset = windowOffset(id, 600_000, own[0]!.at, own[1]!.at);
    expect(own.map((run) => run.dueAt - run.at)).toEqual([offset, offset]);
    expect(own[0]!.labels[0]!.text).toMatch(
      /^starts at 09:0\d(:\d\d)?, its own place in the window that opens at 09:00$/,
    );
    expect(own[0]).not.toHaveProperty("dueBefore");
  });

  it("ends before the next instant", () => {
    const runs = ask(3_600_000, undefined, compiled(cron("*/15 * * * *", NEW_YORK)), "*/15 * * * *").runs;
    expect(runs.map((run) => run.dueBefore! - run.at)).toEqual([900_000, 900_000]);
  });
});

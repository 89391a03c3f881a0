import { describe, expect, it } from "vitest";
import { changedZones, isTouched } from "../../../src/domain/recurrence/adoption/changed-zones.ts";
import { continueFrom } from "../../../src/domain/recurrence/adoption/continuation.ts";
import { differenceOf } from "../../../src/domain/recurrence/adoption/shadow.ts";
import { readLocal, standOf } from "../../../src/domain/recurrence/adoption/stand.ts";
import { toLocal } from "../../../src/domain/recurrence/local.ts";
import { nextAfter } from "../../../src/domain/recurrence/next.ts";
import type { Rule } from "../../../src/domain/recurrence/rule.ts";
import type { ZoneSource } from "../../../src/domain/recurrence/zone-source.ts";
import { olderVersion, tzVersion } from "../../support/tz-versions.ts";
import { compiled, cron, zones as now } from "./support.ts";

const VANCOUVER = "America/Vancouver";
/** Winter is eight hours behind UTC here, seven in the bundled data. */
const old = olderVersion("2025c").zones;
const iso = (at: number | null) => (at === null ? null : new Date(at).toISOString().replace(".000Z", "Z"));

/** Runs under `before` up to `adoptedAt`, then goes on under `after`: the instants of each, up to `until`. */
function through(
  rule: Rule,
  before: ZoneSource,
  after: ZoneSource,
  times: { from: string; adoptedAt: string; until: string },
) {
  const [from, adoptedAt, until] = [times.from, times.adoptedAt, times.until].map((text) => Date.parse(text)) as Three;
  const first: number[] = [];
  for (let at = nextAfter(compiled(rule, before), from); at !== null && at <= adoptedAt; ) {
    first.push(at);
    at = nextAfter(compiled(rule, before), at);
  }
  const standsAt = first.at(-1) ?? from;
  const stand = standOf(standsAt, toLocal(VANCOUVER, standsAt, before), before);
  const next = continueFrom(compiled(rule, after), stand);
  const then: number[] = [];
  for (let at = next(standsAt); at !== null && at <= until; at = next(at)) then.push(at);
  return { first, then };
}
type Three = [number, number, number];

const local = (at: number, zones: ZoneSource) => toLocal(VANCOUVER, at, zones).slice(0, 16);

/** Adoptions at every hour of two days in which old and new data disagree. */
const HOURS = Array.from({ length: 48 }, (_, n) => new Date(Date.UTC(2026, 10, 10, n, 20)).toISOString());
const PERIOD = { from: "2026-11-08T20:00:00Z", until: "2026-11-15T20:00:00Z" };

const FIXED = ["0 9 * * *", "30 2 * * *", "0 8-18 * * 1-5", "0,15,30,45 6,7,8,9,10 * * *", "59 23 * * *", "0 0 * * *"];

describe.each([
  { direction: "clocks turn out to be ahead", before: old, after: now },
  { direction: "clocks turn out to be behind", before: now, after: old },
])("$direction", ({ before, after }) => {
  it.each(FIXED)("%s: every local appointment runs once, whenever the new data is adopted", (expression) => {
    const rule = cron(expression, VANCOUVER);
    for (const adoptedAt of HOURS) {
      const { first, then } = through(rule, before, after, { ...PERIOD, adoptedAt });
      const all = [...first, ...then];
      expect(all, adoptedAt).toEqual([...new Set(all)].toSorted((a, b) => a - b));
      // What is owed has milliseconds for its instant; everything else shows the local time it was meant for.
      const owed = then.filter((at) => at % 1000 !== 0);
      const shown = [
        ...first.map((at) => local(at, before)),
        ...then.filter((at) => at % 1000 === 0).map((at) => local(at, after)),
      ];
      expect(shown, adoptedAt).toEqual([...new Set(shown)].toSorted());
      const meant = appointments(expression, shown[0]!, shown.at(-1)!);
      expect(shown.length + owed.length, adoptedAt).toBe(meant.length);
      expect(meant.filter((one) => !shown.includes(one))).toHaveLength(owed.length);
    }
  });

  it.each(["*/15 * * * *", "0 * * * *"])(
    "%s: reads the wall, so it goes on by instants without a break",
    (expression) => {
      for (const adoptedAt of HOURS) {
        const { first, then } = through(cron(expression, VANCOUVER), before, after, { ...PERIOD, adoptedAt });
        const gaps = [...first, ...then].map((at, k, all) => (k === 0 ? 0 : at - all[k - 1]!)).slice(1);
        expect(new Set(gaps), adoptedAt).toEqual(new Set([expression === "0 * * * *" ? 3_600_000 : 900_000]));
      }
    },
  );
});

/** The matching wall times themselves, in UTC, which has them all. */
function appointments(expression: string, from: string, to: string): string[] {
  const rule = compiled(cron(expression, "UTC"), now);
  const found: string[] = [];
  for (let at = nextAfter(rule, Date.parse(`${from}:00Z`) - 1); at !== null && at <= Date.parse(`${to}:00Z`); ) {
    found.push(new Date(at).toISOString().slice(0, 16));
    at = nextAfter(rule, at);
  }
  return found;
}

describe("one appointment after another", () => {
  it("clocks ahead: nine o'clock comes an hour earlier from the next day on", () => {
    const { then } = through(cron("0 9 * * *", VANCOUVER), old, now, { ...PERIOD, adoptedAt: "2026-11-10T17:30:00Z" });
    expect(then.slice(0, 2).map(iso)).toEqual(["2026-11-11T16:00:00Z", "2026-11-12T16:00:00Z"]);
  });

  it("clocks ahead, adopted between the true nine o'clock and the old one: it is due at once, by its true instant", () => {
    const { first, then } = through(cron("0 9 * * *", VANCOUVER), old, now, {
      ...PERIOD,
      adoptedAt: "2026-11-10T16:30:00Z",
    });
    expect(iso(first.at(-1)!)).toBe("2026-11-09T17:00:00Z");
    expect(iso(then[0]!)).toBe("2026-11-10T16:00:00Z");
  });

  it("clocks behind: the nine o'clock that was served is not shown again", () => {
    const { first, then } = through(cron("0 9 * * *", VANCOUVER), now, old, {
      ...PERIOD,
      adoptedAt: "2026-11-10T16:30:00Z",
    });
    expect(iso(first.at(-1)!)).toBe("2026-11-10T16:00:00Z");
    expect(iso(then[0]!)).toBe("2026-11-11T17:00:00Z");
  });

  it("clocks ahead: an appointment whose true instant was used for another follows it at once", () => {
    const rule = cron("0 8-18 * * *", VANCOUVER);
    const { first, then } = through(rule, old, now, { ...PERIOD, adoptedAt: "2026-11-10T17:30:00Z" });
    // 17:00Z ran as nine o'clock and turns out to have been ten.
    expect(iso(first.at(-1)!)).toBe("2026-11-10T17:00:00Z");
    expect(then.slice(0, 2).map(iso)).toEqual(["2026-11-10T17:00:00.001Z", "2026-11-10T18:00:00Z"]);
  });
});

describe("dates", () => {
  const rule: Rule = {
    kind: "dates",
    zone: VANCOUVER,
    at: ["2026-11-10T09:00", "2026-11-10T10:00", "2026-11-11T09:00"],
  };

  it("clocks behind: a date that was served stays served", () => {
    const { first, then } = through(rule, now, old, { ...PERIOD, adoptedAt: "2026-11-10T16:30:00Z" });
    expect(first.map(iso)).toEqual(["2026-11-10T16:00:00Z"]);
    expect(then.map(iso)).toEqual(["2026-11-10T18:00:00Z", "2026-11-11T17:00:00Z"]);
  });

  it("clocks ahead: a date whose true instant has been used is owed", () => {
    const { first, then } = through(rule, old, now, { ...PERIOD, adoptedAt: "2026-11-10T17:30:00Z" });
    expect(first.map(iso)).toEqual(["2026-11-10T17:00:00Z"]);
    expect(then.map(iso)).toEqual(["2026-11-10T17:00:00.001Z", "2026-11-11T16:00:00Z"]);
  });

  it("instants with their own offset do not move", () => {
    const fixed: Rule = { kind: "dates", at: ["2026-11-10T17:00:00Z", "2026-11-11T17:00:00Z"] };
    const { first, then } = through(fixed, now, old, { ...PERIOD, adoptedAt: "2026-11-10T20:00:00Z" });
    expect([...first, ...then].map(iso)).toEqual(["2026-11-10T17:00:00Z", "2026-11-11T17:00:00Z"]);
  });
});

it("rules joined go on each by itself, and what one has served another does not bring back", () => {
  const rule: Rule = {
    kind: "anyOf",
    rules: [cron("0 9 * * *", VANCOUVER), { kind: "interval", everyMs: 600_000, anchorAt: "2026-11-10T00:05:00Z" }],
  };
  const { then } = through(rule, now, old, { ...PERIOD, adoptedAt: "2026-11-10T16:00:00Z" });
  expect(then.slice(0, 2).map(iso)).toEqual(["2026-11-10T16:05:00Z", "2026-11-10T16:15:00Z"]);
  expect(then.filter((at) => at % 600_000 === 0).map(iso)[0]).toBe("2026-11-11T17:00:00Z");
});

it("without a change nothing is different from the rule itself, through clock changes of every kind", () => {
  for (const zone of ["Europe/Berlin", "Australia/Lord_Howe", "America/St_Johns", "Africa/Cairo", "Pacific/Apia"]) {
    for (const rule of [cron("30 1,2,3 * * *", zone), cron("30 0 * * *", zone), cron("*/20 * * * *", zone)]) {
      const plain = compiled(rule, now);
      let at = nextAfter(plain, Date.parse("2025-09-01T00:00:00Z"))!;
      for (let n = 0; n < 800; n += 1) {
        const stand = standOf(at, toLocal(zone, at, now), now);
        expect(continueFrom(plain, stand)(at)).toBe(nextAfter(plain, at));
        at = nextAfter(plain, at)!;
      }
    }
  }
});

describe("B18 a zone's rules change under a stored next instant", () => {
  const beirut2023b = olderVersion("2023b").zones;
  const nine = cron("0 9 * * *", "Asia/Beirut");

  it("(1) the next instant that 2023b gave moves to where 2023c has it", () => {
    const created = Date.parse("2023-03-26T12:00:00Z");
    expect(iso(nextAfter(compiled(nine, beirut2023b), created))).toBe("2023-03-27T07:00:00Z");
    const onward = continueFrom(compiled(nine, now), standOf(created, null, beirut2023b));
    expect(iso(onward(created))).toBe("2023-03-27T06:00:00Z");
  });

  it("(1) what was materialized stays, and its day is not served again", () => {
    const ran = nextAfter(compiled(nine, beirut2023b), Date.parse("2023-03-26T12:00:00Z"))!;
    const onward = continueFrom(compiled(nine, now), standOf(ran, toLocal("Asia/Beirut", ran, beirut2023b), undefined));
    expect(iso(onward(ran))).toBe("2023-03-28T06:00:00Z");
  });

  it("(4) Almaty's clocks went back on leap day 2024", () => {
    const almaty = compiled(cron("0 9 * * *", "Asia/Almaty"), now);
    expect(iso(nextAfter(almaty, Date.parse("2024-02-29T12:00:00Z")))).toBe("2024-03-01T04:00:00Z");
  });
});

it("what is remembered of a local time is read back", () => {
  expect(readLocal(toLocal(VANCOUVER, Date.parse("2026-11-10T17:00:00.001Z"), old))).toEqual({
    zone: VANCOUVER,
    wall: Date.parse("2026-11-10T09:00:00Z") / 1000,
  });
  expect(readLocal("yesterday")).toBeUndefined();
});

it("changed zones are those whose rules differ, by every name they have", () => {
  expect(changedZones(old, now)).toEqual(
    [VANCOUVER, "Canada/Pacific"].filter((name) => old.textOf(name) !== now.textOf(name)),
  );
  expect(changedZones(now, tzVersion("2026f").zones)).toEqual([]);
  expect(changedZones(now, tzVersion("2027a", { "Asia/Beirut": undefined }).zones)).toEqual(["Asia/Beirut"]);
  expect(isTouched(cron("0 9 * * *", VANCOUVER), old, now)).toBe(true);
  expect(isTouched(cron("0 9 * * *", "Europe/Berlin"), old, now)).toBe(false);
  expect(isTouched({ kind: "interval", everyMs: 1000, anchorAt: 0 }, old, now)).toBe(false);
});

describe("what differs", () => {
  const HOUR = 3_600_000;
  const daily = (first: number, days: number) => Array.from({ length: days }, (_, n) => (first + 24 * n) * HOUR);

  it("is said of each instant with what became of it, also where the first one has passed on one side only", () => {
    // Looked at between nine o'clock of after and nine o'clock of before.
    const moves = differenceOf({ instants: daily(17, 3) }, { instants: daily(16 + 24, 3) })!.moves;
    expect(moves).toEqual([
      { before: 17 * HOUR, after: null },
      { before: 41 * HOUR, after: 40 * HOUR },
      { before: 65 * HOUR, after: 64 * HOUR },
      { before: null, after: 88 * HOUR },
    ]);
  });

  it("is every instant where only one side has any", () => {
    expect(differenceOf({ instants: [1, 2] }, { instants: [] })!.moves).toEqual([
      { before: 1, after: null },
      { before: 2, after: null },
    ]);
  });
});

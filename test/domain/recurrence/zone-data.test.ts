import { describe, expect, it } from "vitest";
import { loadBundledTzData } from "../../../src/app/tz-data.ts";
import { readTzif } from "../../../src/domain/recurrence/tzif.ts";
import { firstReading, highestWall, makeZone, offsetAt } from "../../../src/domain/recurrence/zone.ts";
import { packZones } from "../../../src/domain/recurrence/zone-pack.ts";
import { zoneSourceFromBytes } from "../../../src/domain/recurrence/zone-source.ts";

type Change = { at: number; offset: number };
const at = (text: string) => Date.parse(text) / 1000;

/** A TZif file of version 2, its first part empty as readers of version 2 skip it anyway. */
function tzif(firstOffset: number, changes: readonly Change[], footer: string): Uint8Array {
  const offsets = [...new Set([firstOffset, ...changes.map(({ offset }) => offset)])];
  const bytes = new DataView(new ArrayBuffer(88 + changes.length * 9 + offsets.length * 6 + 4));
  for (const [start, types, count, chars] of [
    [0, 0, 0, 0] as const,
    [44, offsets.length, changes.length, 4] as const,
  ]) {
    bytes.setUint32(start, 0x545a6966);
    bytes.setUint8(start + 4, 0x32);
    bytes.setUint32(start + 32, count);
    bytes.setUint32(start + 36, types);
    bytes.setUint32(start + 40, chars);
  }
  for (const [k, change] of changes.entries()) {
    bytes.setBigInt64(88 + k * 8, BigInt(change.at));
    bytes.setUint8(88 + changes.length * 8 + k, offsets.indexOf(change.offset));
  }
  for (const [k, offset] of offsets.entries()) bytes.setInt32(88 + changes.length * 9 + k * 6, offset);
  return Buffer.concat([Buffer.from(bytes.buffer), Buffer.from(`\n${footer}\n`)]);
}

const BERLIN = "CET-1CEST,M3.5.0,M10.5.0/3";
const berlin2036: Change[] = [
  { at: at("2036-03-30T01:00:00Z"), offset: 7200 },
  { at: at("2036-10-26T01:00:00Z"), offset: 3600 },
  { at: at("2037-03-29T01:00:00Z"), offset: 7200 },
  { at: at("2037-10-25T01:00:00Z"), offset: 3600 },
];
const sentinel = { at: 2 ** 31 - 1, offset: 3600 };

describe("packing", () => {
  it("leaves out what the footer says anyway, and the zone still reads the same", () => {
    const old = { at: at("1980-01-01T00:00:00Z"), offset: 3600 };
    const packed = packZones("2099z", new Map([["A/B", tzif(3208, [old, ...berlin2036, sentinel], BERLIN)]]));
    expect(new TextDecoder().decode(packed)).toBe(
      `punctual-tz 1 2099z\nA/B|${BERLIN}|3208,3600,7200|1.${old.at.toString(36)} 2.${(berlin2036[0]!.at - old.at).toString(36)}\n`,
    );
    const zone = zoneSourceFromBytes(packed).findZone("A/B")!;
    for (const change of [old, ...berlin2036]) expect(offsetAt(zone, change.at)).toBe(change.offset);
    expect(offsetAt(zone, old.at - 1)).toBe(3208);
    expect(offsetAt(zone, at("2030-07-01T00:00:00Z"))).toBe(3600); // before 2036 the file knows of no summer time
    expect(offsetAt(zone, at("2437-07-01T00:00:00Z"))).toBe(7200);
  });

  it("keeps the place where the footer takes over, though nothing changes there", () => {
    const quiet = [
      { at: at("2000-01-01T00:00:00Z"), offset: 3600 },
      { at: at("2040-01-01T00:00:00Z"), offset: 3600 },
    ];
    const zone = zoneSourceFromBytes(packZones("x", new Map([["A/B", tzif(0, quiet, BERLIN)]]))).findZone("A/B")!;
    expect(offsetAt(zone, at("2030-07-01T00:00:00Z"))).toBe(3600);
    expect(offsetAt(zone, at("2040-07-01T00:00:00Z"))).toBe(7200);
  });

  it("writes equal rules once and finds them under each name", () => {
    const file = tzif(3600, berlin2036, BERLIN);
    const source = zoneSourceFromBytes(
      packZones(
        "x",
        new Map([
          ["Z/Z", file],
          ["A/B", file],
        ]),
      ),
    );
    expect(source.names).toEqual(["A/B", "Z/Z"]);
    expect(source.findZone("Z/Z")).toMatchObject({ name: "Z/Z" });
    expect(source.findZone("z/z")).toBeUndefined();
  });

  it("refuses what it cannot read", () => {
    expect(() => zoneSourceFromBytes(new TextEncoder().encode("hello"))).toThrow("Not packed time zone data");
    expect(() => readTzif(new TextEncoder().encode("hello"))).toThrow("Not a TZif file");
    expect(() => packZones("x", new Map([["A/B", tzif(0, [], "nonsense")]]))).toThrow("unreadable TZ string");
  });
});

describe("a zone's two primitives", () => {
  // +0 until 1000, then +100 (a gap of 100), then +40 from 5000 (60 are repeated), then +300 from 5030.
  const zone = makeZone(
    "T",
    0,
    [
      { at: 1000, offset: 100 },
      { at: 5000, offset: 40 },
      { at: 5030, offset: 300 },
    ],
    {
      standardOffset: 300,
    },
  );

  it("F lands where a gap ends, on the first pass of a repeat, and never goes back", () => {
    expect([999, 1000, 1050, 1100, 1101].map((wall) => firstReading(zone, wall))).toEqual([
      999, 1000, 1000, 1000, 1001,
    ]);
    expect([5050, 5099, 5100, 5329, 5330, 5331].map((wall) => firstReading(zone, wall))).toEqual([
      4950, 4999, 5030, 5030, 5030, 5031,
    ]);
  });

  it("H stays at the highest reading while times repeat", () => {
    expect([999, 1000, 4999, 5000, 5029, 5030].map((t) => highestWall(zone, t))).toEqual([
      999, 1100, 5099, 5099, 5099, 5330,
    ]);
  });
});

describe("the bundled data", () => {
  const { zones, sha256 } = loadBundledTzData();

  it("is a release of this year's rules, named and hashed", () => {
    expect(zones.version).toMatch(/^20\d\d[a-z]$/);
    expect(sha256).toMatch(/^[0-9a-f]{64}$/);
    expect(zones.names.length).toBeGreaterThan(590);
    expect(offsetAt(zones.findZone("America/Vancouver")!, at("2026-12-01T00:00:00Z"))).toBe(-7 * 3600);
  });

  it("agrees with the machine's own data about the settled past of every zone both know", () => {
    for (const name of Intl.supportedValuesOf("timeZone")) {
      const zone = zones.findZone(name);
      if (zone === undefined) continue;
      const format = new Intl.DateTimeFormat("en-US", { timeZone: name, timeZoneName: "longOffset" });
      for (const time of [
        "1999-01-15T12:00:00Z",
        "2007-10-30T12:00:00Z",
        "2013-07-15T12:00:00Z",
        "2019-04-01T12:00:00Z",
      ]) {
        const text = format.formatToParts(new Date(time)).find(({ type }) => type === "timeZoneName")!.value;
        const [, sign, hours, minutes] = /^GMT(?:([+-])(\d\d):(\d\d))?$/.exec(text)!;
        const offset =
          hours === undefined ? 0 : (sign === "-" ? -1 : 1) * (Number(hours) * 3600 + Number(minutes) * 60);
        expect({ name, time, offset: offsetAt(zone, at(time)) }).toEqual({ name, time, offset });
      }
    }
  });
});

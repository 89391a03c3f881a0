import { describe, expect, it } from "vitest";
import { EFFECT_EDGES, SEND_OUTCOMES } from "../../src/domain/effects/states.ts";
import { OBJECT_EDGES } from "../../src/domain/objects/life.ts";
import { GIVE_UP_REASONS } from "../../src/domain/retry.ts";
import {
  EDGES,
  ENDED_STATES,
  HELD_BY,
  LIVE_STATES,
  SCHEDULE_STATUSES,
  SKIP_REASONS,
  TRIGGERS,
} from "../../src/domain/states.ts";
import { DELIVERY_EDGES, EVENT_TYPES } from "../../src/domain/webhooks/events.ts";
import { codeIn, tableIn } from "./table.ts";

const firstColumn = (header: string) => tableIn("docs/lifecycle.md", header).flatMap((row) => codeIn(row[0]));

describe("docs/lifecycle.md", () => {
  const states = tableIn("docs/lifecycle.md", "state");

  it("has the edges of the program, all of them and no others", () => {
    expect(Object.fromEntries(states.map((row) => [codeIn(row[0])[0], codeIn(row[2])]))).toEqual(EDGES);
  });

  it("has the edges of objects", () => {
    const objects = tableIn("docs/lifecycle.md", "object");
    expect(Object.fromEntries(objects.map((row) => [codeIn(row[0])[0], codeIn(row[1])]))).toEqual(OBJECT_EDGES);
  });

  it("says where each state is kept", () => {
    const keptIn = (table: string) => states.filter((row) => row[1] === table).flatMap((row) => codeIn(row[0]));
    expect(keptIn("live_run")).toEqual([...LIVE_STATES]);
    expect(keptIn("run").sort()).toEqual([...ENDED_STATES].sort());
  });

  it("lets verbs move runs along edges only, and names a mover for every edge", () => {
    const moves = tableIn("docs/lifecycle.md", "verb").flatMap(([, from, to]) =>
      codeIn(from).flatMap((one) => codeIn(to).map((other) => `${one} → ${other}`)),
    );
    const edges = Object.entries(EDGES).flatMap(([from, all]) => all.map((to) => `${from} → ${to}`));
    expect([...new Set(moves)].sort()).toEqual(edges.sort());
  });

  it.each([
    ["reason", SKIP_REASONS],
    ["held by", HELD_BY],
    ["trigger", TRIGGERS],
    ["status", SCHEDULE_STATUSES],
    ["given up for", GIVE_UP_REASONS],
  ] as const)("lists every %s", (header, values) => {
    expect(firstColumn(header)).toEqual([...values]);
  });

  it("has the edges of effects, all of them and no others, and every end of an attempt to send", () => {
    const effects = tableIn("docs/lifecycle.md", "effect").map((row) => [codeIn(row[0])[0], codeIn(row[1]).toSorted()]);
    const edges = Object.entries(EFFECT_EDGES).map(([from, to]) => [from, [...to].toSorted()]);
    expect(Object.fromEntries(effects)).toEqual(Object.fromEntries(edges));
    expect(firstColumn("attempt to send")).toEqual([...SEND_OUTCOMES]);
  });

  it("has the edges of deliveries", () => {
    const deliveries = tableIn("docs/lifecycle.md", "delivery").map((row) => [codeIn(row[0])[0], codeIn(row[1])]);
    expect(Object.fromEntries(deliveries)).toEqual(DELIVERY_EDGES);
  });

  it("names every event beside what it means", () => {
    expect(tableIn("docs/webhooks.md", "event").flatMap((row) => codeIn(row[0]))).toEqual([...EVENT_TYPES]);
  });
});

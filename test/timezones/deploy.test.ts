import { expect, test } from "vitest";
import { loadBundledTzData } from "../../src/app/tz-data.ts";
import { adoptTzData } from "../../src/authority/timezones/adopt.ts";
import { pinZones } from "../../src/authority/timezones/pin-zones.ts";
import { startNode, until } from "../support/system.ts";
import { candidateOf } from "../support/tz-versions.ts";
import { createWorld } from "../support/world.ts";
import * as scene from "./scenes.ts";

const bundled = loadBundledTzData().zones.version;

test("a deploy that brings newer data schedules on by the old; an adoption takes hold of what runs, without a break", async () => {
  const world = await createWorld();
  // What an older release has adopted. It disagrees on Vancouver at any time.
  const old = { ...scene.behind, zones: { ...scene.behind.zones, version: "2020a" } };
  await pinZones(world.authority, candidateOf(old));
  const node = await startNode({ roles: ["scheduler", "sweeper"], url: world.url });
  try {
    const { authority } = node.core;
    expect(authority.tzVersion).toBe("2020a");
    const everySecond = { kind: "cron" as const, expression: "* * * * * *", seconds: true, zone: scene.VANCOUVER };
    const ticking = await world.newSchedule({ rule: everySecond, overlap: { policy: "allow" } });
    const nextAt = scene.minutesFromNow(6 * 60);
    const daily = await world.newSchedule({ rule: scene.dailyAt(nextAt, old) });
    await until("some runs by the old data", async () => (await scene.instantsOf(world, ticking)).length >= 3);
    expect(await scene.cursorOf(world, daily)).toMatchObject({ tz_version: "2020a", next_run_at: new Date(nextAt) });

    // The true nine o'clock, so to say, by what this release brought along.
    await adoptTzData(authority, { actor: "test", version: bundled });
    await until(
      "the process and its replanner to have noticed",
      async () => (await scene.cursorOf(world, daily)).tz_version === bundled,
    );
    const moved = (await scene.cursorOf(world, daily)).next_run_at!.getTime();
    expect(scene.dailyAt(moved, loadBundledTzData())).toEqual(scene.dailyAt(nextAt, old));
    const before = (await scene.instantsOf(world, ticking)).length;
    await until("runs by the new data", async () => (await scene.instantsOf(world, ticking)).length >= before + 3);
    const instants = await scene.instantsOf(world, ticking);
    expect(new Set(instants.slice(1).map((at, k) => at - instants[k]!))).toEqual(new Set([1_000]));
  } finally {
    await node.stop();
  }
  await world.check();
  await world.close();
});

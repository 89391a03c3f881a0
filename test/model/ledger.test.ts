import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type World } from "../support/world.ts";
import { Play } from "./play.ts";
import { createSetting, type Setting } from "./setting.ts";

/**
 * The ledger against a literal model: random verbs on a few schedules, on a clock that the test moves, with crashes and
 * lost replies. After each, every instant that the rules named must be accounted for exactly once. The seed of a failure
 * is in its message; MODEL_SEED repeats it, MODEL_STEPS and MODEL_SEEDS make a soak of it.
 */
const STEPS = Number(process.env.MODEL_STEPS ?? 200);
const SEEDS = Number(process.env.MODEL_SEEDS ?? 2);
const FIRST_SEED = Number(process.env.MODEL_SEED ?? 1 + Math.floor(Math.random() * 1_000_000));

describe("whatever happens to a few schedules", () => {
  let world: World;
  let setting: Setting;
  beforeEach(async () => {
    world = await createWorld();
    setting = await createSetting(world);
  });
  afterEach(async () => {
    await setting.close();
    await world.close();
  });

  it.for(Array.from({ length: SEEDS }, (_, n) => FIRST_SEED + n))(
    "every nominal instant is accounted for, once (seed %i)",
    { timeout: 60_000 + STEPS * 1_000 },
    async (seed) => {
      const play = new Play(world, setting, seed);
      try {
        await play.run(STEPS);
      } catch (error) {
        const told = `MODEL_SEED=${seed} MODEL_SEEDS=1, step ${play.history.length}`;
        throw new Error(`${told}: ${(error as Error).message}\n${play.history.slice(-12).join("\n")}`, {
          cause: error,
        });
      }
      // A play in which nothing happens proves nothing.
      expect(new Set(play.history.map((line) => line.split(" ")[2])).size).toBeGreaterThan(15);
    },
  );
});

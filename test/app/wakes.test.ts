import { expect, test } from "vitest";
import { createWakes } from "../../src/app/wakes.ts";
import { systemClock } from "../../src/kernel/clock.ts";

test("freed slots wake the relay, here and elsewhere, but not each of them", () => {
  let nowMs = 1_000;
  const told: string[] = [];
  const waker = { wake: (topic: string) => told.push(topic), on: () => () => undefined };
  const wakes = createWakes({ ...systemClock, monotonic: () => nowMs }, waker as never);
  let woken = 0;
  wakes.on("relay", () => woken++);
  for (let freed = 0; freed < 10; freed++) wakes.signals.slotsFreed();
  expect({ woken, told }).toEqual({ woken: 1, told: ["relay"] });
  nowMs += 50;
  wakes.signals.slotsFreed();
  expect({ woken, told }).toEqual({ woken: 2, told: ["relay", "relay"] });
});

import { expect, it } from "vitest";
import { addTally, afterTrouble, hasFailedTooOften, limitOfStep, pauseOfPace } from "../../src/domain/operation.ts";

it("after trouble a step is smaller, down to one item", () => {
  expect([0, 1, 2, 3, 7].map(limitOfStep)).toEqual([200, 14, 1, 1, 1]);
});

it("bad data is looked for at once; anything else is tried again after longer and longer pauses, eight times", () => {
  expect(afterTrouble(0, true)).toEqual({ giveUp: false, pauseMs: 0 });
  expect(afterTrouble(1, true)).toEqual({ giveUp: false, pauseMs: 0 });
  const pauses = [0, 1, 2, 3, 4, 5, 6].map((tries) => afterTrouble(tries, false));
  expect(pauses.map((one) => one.pauseMs / 1_000)).toEqual([1, 2, 4, 8, 16, 32, 60]);
  expect(pauses.some((one) => one.giveUp)).toBe(false);
  expect(afterTrouble(7, false)).toMatchObject({ giveUp: true });
  expect([99, 100].map(hasFailedTooOften)).toEqual([false, true]);
});

it("a pace is kept by waiting for what was done", () => {
  expect(pauseOfPace(5, 10)).toBe(500);
  expect(pauseOfPace(0, 10)).toBe(0);
  expect(pauseOfPace(200, null)).toBe(0);
});

it("counts are added by their names", () => {
  expect(addTally({ a: 1, b: 2 }, { b: 3, c: 4 })).toEqual({ a: 1, b: 5, c: 4 });
});

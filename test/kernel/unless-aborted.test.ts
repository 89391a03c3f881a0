import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { unlessAborted } from "../../src/kernel/unless-aborted.ts";

test("work that throws before it begins leaves nothing behind on the signal", async () => {
  const { signal } = new AbortController();
  const work = (): Promise<never> => {
    throw new Error("at once");
  };
  await expect(unlessAborted(signal, work)).rejects.toThrow("at once");
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

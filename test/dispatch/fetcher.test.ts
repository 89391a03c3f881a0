import { expect, test } from "vitest";
import { createFetcher } from "../../src/dispatch/fetcher.ts";
import { createSlots } from "../../src/dispatch/slots.ts";
import type { Hint, Source } from "../../src/dispatch/source.ts";
import { systemClock } from "../../src/kernel/clock.ts";
import { silentLog } from "../../src/kernel/log.ts";
import { until } from "../support/system.ts";

const hintOf = (rowId: bigint): Hint => ({ rowId, epoch: 1, tenantId: "t", class: "short", runCount: 1 });

test("a hint is acknowledged when its claim has committed, and left to the sweeper when it has not", async () => {
  const waiting = [hintOf(1n), hintOf(2n)];
  const acknowledged: bigint[] = [];
  const abandoned: bigint[] = [];
  const source: Source = {
    take: async () => ({ hints: waiting.splice(0) }),
    acknowledge: (hints) => void acknowledged.push(...hints.map((hint) => hint.rowId)),
    abandon: (hints) => void abandoned.push(...hints.map((hint) => hint.rowId)),
  };
  const claimer = {
    claim: (hint: Hint) => (hint.rowId === 1n ? Promise.resolve() : Promise.reject(new Error("no answer"))),
    giveUp() {},
    drain: async () => {},
  };
  const slots = createSlots({ short: 2 });
  const fetcher = createFetcher({ class: "short", source, claimer, slots, clock: systemClock, log: silentLog });
  await fetcher.start();
  await until("both are settled", () => acknowledged.length + abandoned.length === 2);
  await fetcher.stop();
  expect({ acknowledged, abandoned, used: slots.used("short") }).toEqual({
    acknowledged: [1n],
    abandoned: [2n],
    used: 0,
  });
});

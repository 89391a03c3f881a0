import { afterAll, beforeAll, expect, it } from "vitest";
import { setQuota } from "../../src/authority/tenants/set-quota.ts";
import { SlotAccounts } from "../../src/domain/dispatch/slot-accounts.ts";
import { createReminder } from "../../src/loops/reminder.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
beforeAll(async () => {
  world = await createWorld();
});
afterAll(() => world?.close());

it("what a tenant weighs in a class is known to a worker at its next look, and so is that it weighs 1 again", async () => {
  const accountsOf = () => new SlotAccounts({ slots: 10, reservedFraction: 0, now: () => 0 });
  const accounts = new Map([
    ["short", accountsOf()],
    ["long", accountsOf()],
  ]);
  const reminder = createReminder({
    authority: world.authority,
    consumer: { remind: () => undefined },
    redis: { available: () => true },
    accounts,
  });
  const { tenantId } = world;
  const weigh = async (weight: number) => {
    const quota = { maxRunning: null, startRatePerSecond: null, weight, onInfeasible: "warn" } as const;
    await setQuota(world.authority, { tenantId, actor: "test", class: "short", quota });
  };
  const seen = async () => {
    await reminder.pass(new AbortController().signal);
    return [...accounts.values()].map((account) => account.contender(tenantId, 1).weight);
  };
  expect(await seen()).toEqual([1, 1]);
  await weigh(5);
  expect(await seen()).toEqual([5, 1]);
  await weigh(1);
  expect(await seen()).toEqual([1, 1]);
});

import { afterEach, beforeEach, expect, test } from "vitest";
import type { Grant } from "../../src/authority/attempts/grant.ts";
import type { Authority } from "../../src/authority/authority.ts";
import { createClaimer } from "../../src/dispatch/claimer.ts";
import type { Clock } from "../../src/kernel/clock.ts";
import { outcomeUnknown } from "../../src/kernel/errors.ts";
import { createWorld, type World } from "../support/world.ts";

let world: World;
let nowMs: number;

beforeEach(async () => {
  world = await createWorld();
  nowMs = 0;
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** Pauses between tries take no time; the clock says they did. */
function clockOf(): Clock {
  const sleep = async (delayMs: number) => {
    nowMs += delayMs;
  };
  return { ...world.authority.clock, monotonic: () => nowMs, sleep };
}

/** The first claim commits, and its reply is lost like those of all repeats up to `replies`. */
function losing(replies: number, onLoss = (_calls: number) => {}): { authority: Authority; calls(): number } {
  let calls = 0;
  const transact = async (...parts: Parameters<Authority["transact"]>) => {
    const answer = calls === 0 || calls >= replies ? await world.authority.transact(...parts) : undefined;
    if (calls++ >= replies) return answer;
    onLoss(calls);
    throw outcomeUnknown("no reply", undefined);
  };
  return {
    authority: { ...world.authority, clock: clockOf(), transact: transact as Authority["transact"] },
    calls: () => calls,
  };
}

async function claim(authority: Authority, before = (_claimer: ReturnType<typeof createClaimer>) => {}) {
  const schedule = await world.newSchedule();
  await world.makeDue(schedule);
  await world.materialize([schedule]);
  const [row] = await world.outbox();
  const granted: { grants: readonly Grant[]; trustedUntilMs: number }[] = [];
  const claimer = createClaimer({
    authority,
    worker: "worker-a",
    lanes: 1,
    onGrants: (grants, trustedUntilMs) => granted.push({ grants, trustedUntilMs }),
  });
  before(claimer);
  const hint = { rowId: row!.id, epoch: 1, tenantId: row!.tenant_id, class: "short", runCount: 1 };
  await claimer.claim(hint, 1);
  return granted;
}

const TRUST_MS = 55_000;

test("a claim without a reply is repeated as long as its lease can be trusted, and gets its grant", async () => {
  const { authority } = losing(20);
  const granted = await claim(authority);
  expect(nowMs).toBeGreaterThan(15_000);
  expect(granted).toMatchObject([{ grants: [{ attempt: 1 }], trustedUntilMs: TRUST_MS }]);
});

test("a claim without a reply is given up when its lease could not be trusted any more", async () => {
  const { authority } = losing(1_000);
  await expect(claim(authority)).rejects.toMatchObject({ code: "outcome-unknown" });
  expect(nowMs).toBeGreaterThanOrEqual(TRUST_MS);
  expect(nowMs).toBeLessThan(TRUST_MS + 5_000);
});

test("a worker that stops does not repeat its claims", async () => {
  let stop = () => {};
  const { authority, calls } = losing(1_000, (n) => n === 3 && stop());
  await expect(
    claim(authority, (claimer) => {
      stop = claimer.giveUp;
    }),
  ).rejects.toMatchObject({ code: "outcome-unknown" });
  expect(calls()).toBe(3);
});

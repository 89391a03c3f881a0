import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lapseEffects } from "../../../src/authority/effects/lapse.ts";
import { mintId } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import {
  ageSend,
  claimSends,
  effect,
  email,
  expireSend,
  makeSendable,
  report,
  SENT,
  sending,
  succeeded,
  UNKNOWN,
  webhook,
} from "./scenes.ts";

const DAY_MS = 86_400_000;
const busy = { kind: "refused", transient: true, message: "451 later" } as const;
const never = { kind: "refused", transient: false, message: "550 no such user" } as const;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const attemptsOf = async (id: string) =>
  (await world.admin.query("select n, outcome, sender from effect_attempt where effect_id = $1 order by n", [id])).rows;

describe("an effect", () => {
  it("that was sent keeps what the other side calls it, and is never sent again", async () => {
    const grant = await sending(world, email());
    expect(await report(world, grant, SENT)).toEqual({ kind: "settled", state: "sent" });
    expect(await effect(world, grant.effectId)).toMatchObject({
      state: "sent",
      external_id: "250 queued",
      attempts: 1,
    });
    expect(await attemptsOf(grant.effectId)).toEqual([{ n: 1, outcome: "sent", sender: "sender-a" }]);
    await makeSendable(world, grant.effectId);
    expect(await claimSends(world, [grant.effectId])).toEqual([]);
  });

  it("that was refused for the moment is tried again under the same name with a higher fence", async () => {
    const first = await sending(world, email());
    expect(await report(world, first, busy)).toEqual({ kind: "settled", state: "pending" });
    const waiting = await effect(world, first.effectId);
    expect(waiting).toMatchObject({ in_doubt: false, error_message: "451 later" });
    expect(waiting.next_attempt_at.getTime()).toBeGreaterThan(Date.now());
    expect(await claimSends(world, [first.effectId])).toEqual([]);
    await makeSendable(world, first.effectId);
    const [second] = await claimSends(world, [first.effectId]);
    expect(second).toMatchObject({ actionId: first.actionId, attempt: 2, request: first.request });
    expect(second!.fence).toBeGreaterThan(first.fence);
  });

  it("that waits as long as it was asked to", async () => {
    const grant = await sending(world, webhook());
    await report(world, grant, { ...busy, retryAfterMs: 600_000 });
    const { next_attempt_at } = await effect(world, grant.effectId);
    expect(next_attempt_at.getTime() - Date.now()).toBeGreaterThan(590_000);
  });

  it("that was refused for good, or too often, has failed", async () => {
    const forGood = await sending(world, email());
    expect(await report(world, forGood, never)).toEqual({ kind: "settled", state: "failed" });
    const tooOften = await sending(world, email({ retry: { maxAttempts: 1 } }));
    expect(await report(world, tooOften, busy)).toEqual({ kind: "settled", state: "failed" });
  });

  it("that was not even tried is due at once and has spent nothing", async () => {
    const grant = await sending(world, email({ retry: { maxAttempts: 1 } }));
    await report(world, grant, { kind: "not-sent", message: "too late" });
    expect(await effect(world, grant.effectId)).toMatchObject({
      state: "pending",
      budget_attempts: 0,
      in_doubt: false,
    });
    expect(await claimSends(world, [grant.effectId])).toHaveLength(1);
  });
});

describe("an outcome that nobody knows", () => {
  it.each([
    ["hold", { state: "uncertain", resolution: null }],
    ["drop", { state: "resolved", resolution: "dropped" }],
    ["resend", { state: "pending", in_doubt: true }],
  ] as const)("of an email with onUncertain %s", async (onUncertain, after) => {
    const grant = await sending(world, email({ onUncertain }));
    await report(world, grant, UNKNOWN);
    expect(await effect(world, grant.effectId)).toMatchObject(after);
    await makeSendable(world, grant.effectId);
    expect(await claimSends(world, [grant.effectId])).toHaveLength(onUncertain === "resend" ? 1 : 0);
  });

  it("of a webhook is tried again while its receiver knows the key, and held after that", async () => {
    const grant = await sending(world, webhook({ retry: { maxElapsedMs: 30 * DAY_MS } }));
    await report(world, grant, UNKNOWN);
    expect(await effect(world, grant.effectId)).toMatchObject({ state: "pending", in_doubt: true });
    await makeSendable(world, grant.effectId);
    const [again] = await claimSends(world, [grant.effectId]);
    expect(again!.actionId).toBe(grant.actionId);
    await report(world, again!, UNKNOWN);

    await ageSend(world, grant.effectId, DAY_MS);
    await makeSendable(world, grant.effectId);
    expect(await claimSends(world, [grant.effectId])).toEqual([]);
    expect(await effect(world, grant.effectId)).toMatchObject({ state: "uncertain" });
  });

  it("of a webhook is asked for again when its receiver says to, or held where it will have forgotten by then", async () => {
    const soon = await sending(world, webhook());
    await report(world, soon, { ...UNKNOWN, retryAfterMs: 600_000 });
    const { state, next_attempt_at } = await effect(world, soon.effectId);
    expect(state).toBe("pending");
    expect(next_attempt_at.getTime() - Date.now()).toBeGreaterThan(590_000);
    const late = await sending(world, webhook({ idempotencyWindowMs: 60_000 }));
    await report(world, late, { ...UNKNOWN, retryAfterMs: 600_000 });
    expect(await effect(world, late.effectId)).toMatchObject({ state: "uncertain" });
  });

  it("of a webhook whose receiver is still at it goes on being asked under its key, until somebody knows", async () => {
    const grant = await sending(world, webhook());
    await report(world, grant, UNKNOWN);
    await makeSendable(world, grant.effectId);
    const [again] = await claimSends(world, [grant.effectId]);
    await report(world, again!, { kind: "refused", transient: true, message: "the receiver answered 409" });
    expect(await effect(world, grant.effectId)).toMatchObject({ state: "pending", in_doubt: true });
    await makeSendable(world, grant.effectId);
    const [last] = await claimSends(world, [grant.effectId]);
    expect(await report(world, last!, SENT)).toEqual({ kind: "settled", state: "sent" });
  });

  it("of a webhook whose receiver keeps no keys is held at once", async () => {
    const grant = await sending(world, webhook({ idempotencyWindowMs: 0 }));
    await report(world, grant, UNKNOWN);
    expect(await effect(world, grant.effectId)).toMatchObject({ state: "uncertain" });
  });

  it("stays unknown when a later try is refused for good: nobody may say that it did not happen", async () => {
    const grant = await sending(world, webhook());
    await report(world, grant, UNKNOWN);
    await makeSendable(world, grant.effectId);
    const [again] = await claimSends(world, [grant.effectId]);
    expect(await report(world, again!, never)).toEqual({ kind: "settled", state: "uncertain" });
  });
});

describe("a sender that is not heard of again", () => {
  it("leaves an email uncertain, and it is not sent twice", async () => {
    const grant = await sending(world, email());
    expect(await lapseEffects(world.authority, [grant.effectId])).toBe(0);
    await expireSend(world, grant.effectId);
    expect(await lapseEffects(world.authority, [grant.effectId])).toBe(1);
    expect(await effect(world, grant.effectId)).toMatchObject({ state: "uncertain", attempts: 1 });
    expect(await attemptsOf(grant.effectId)).toMatchObject([{ n: 1, outcome: "lapsed" }]);
    expect(await lapseEffects(world.authority, [grant.effectId])).toBe(0);
  });

  it("leaves a webhook to be sent again under its key", async () => {
    const grant = await sending(world, webhook());
    await expireSend(world, grant.effectId);
    await lapseEffects(world.authority, [grant.effectId]);
    await makeSendable(world, grant.effectId);
    expect(await claimSends(world, [grant.effectId])).toMatchObject([{ actionId: grant.actionId, attempt: 2 }]);
  });

  it("may still say that it was sent, as long as nobody has sent it since", async () => {
    const grant = await sending(world, email());
    await expireSend(world, grant.effectId);
    await lapseEffects(world.authority, [grant.effectId]);
    expect(await report(world, grant, UNKNOWN)).toEqual({ kind: "stale-fence" });
    expect(await report(world, grant, SENT)).toEqual({ kind: "settled", state: "sent" });
    expect(await attemptsOf(grant.effectId)).toMatchObject([{ n: 1, outcome: "sent" }]);
  });

  it("changes nothing once somebody else has sent it", async () => {
    const stale = await sending(world, webhook());
    await expireSend(world, stale.effectId);
    await lapseEffects(world.authority, [stale.effectId]);
    await makeSendable(world, stale.effectId);
    const [current] = await claimSends(world, [stale.effectId], { sender: "sender-b" });
    expect(await report(world, stale, never)).toEqual({ kind: "stale-fence" });
    expect(await report(world, stale, SENT)).toEqual({ kind: "stale-fence" });
    expect(await effect(world, stale.effectId)).toMatchObject({ state: "sending", attempts: 2 });
    // Also while nobody is at it: the second sender was not heard of either.
    await expireSend(world, stale.effectId);
    await lapseEffects(world.authority, [stale.effectId]);
    expect(await report(world, stale, SENT)).toEqual({ kind: "stale-fence" });
    expect(await effect(world, stale.effectId)).toMatchObject({ state: "pending" });
    expect(await report(world, current!, SENT)).toEqual({ kind: "settled", state: "sent" });
    expect(await report(world, stale, never)).toEqual({ kind: "stale-fence" });
  });
});

describe("a lost reply", () => {
  it("of a claim: the repeat gets the same grants, and nobody else gets any", async () => {
    const { effects } = await succeeded(world, [email(), webhook()]);
    const ids = effects.map((one) => one.id);
    const claimId = mintId(Date.now(), 0);
    const first = await claimSends(world, ids, { claimId });
    const byId = (a: { effectId: string }, b: { effectId: string }) => (a.effectId < b.effectId ? -1 : 1);
    const repeat = await claimSends(world, ids, { claimId, repeated: true });
    expect(repeat.toSorted(byId)).toEqual(first.toSorted(byId));
    expect(await claimSends(world, ids, { repeated: true })).toEqual([]);
  });

  it("of a report: the repeat is told that it was heard", async () => {
    const grant = await sending(world, email());
    await report(world, grant, busy);
    expect(await report(world, grant, busy)).toEqual({ kind: "already-settled", state: "pending" });
    expect(await effect(world, grant.effectId)).toMatchObject({ attempts: 1, budget_attempts: 1 });
  });
});

it("nothing is sent from a copy of the database that may have lost commits", async () => {
  const { effects } = await succeeded(world, [email()]);
  await world.admin.query("update authority_epoch set timeline = timeline + 1");
  await expect(claimSends(world, [effects[0]!.id])).rejects.toMatchObject({ code: "recovery-needed" });
  expect(await effect(world, effects[0]!.id)).toMatchObject({ state: "pending", attempts: 0 });
  await world.admin.query("update authority_epoch set timeline = timeline - 1");
});

import { afterEach, beforeEach, expect, it } from "vitest";
import { resolveEffect } from "../../../src/authority/effects/resolve.ts";
import type { SendGrant } from "../../../src/authority/effects/send.ts";
import { createWorld, type World } from "../../support/world.ts";
import { running } from "../scenes.ts";
import { claimSends, effect, effectsOf, email, report, sending, UNKNOWN, webhook } from "./scenes.ts";

/** Links to results in what a person has sent again. */

const DAY_MS = 86_400_000;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

/** So many days later: all that is written down of the effect and its result is older by that. */
async function passDays(effectId: string, days: number): Promise<void> {
  await world.admin.query(
    `update effect set created_at = created_at - $2 * interval '1 day', first_sent_at = first_sent_at - $2 * interval '1 day',
            budget_from = budget_from - $2 * interval '1 day',
            request = jsonb_set(request, '{facts,result,linkExpires}',
                                to_jsonb((request #>> '{facts,result,linkExpires}')::bigint - $2 * 86400))
      where id = $1`,
    [effectId, days],
  );
  await world.admin.query(
    "update object set pin_until = pin_until - $1 * interval '1 day', referenced_at = referenced_at - $1 * interval '1 day'",
    [days],
  );
}

const resend = (effectId: string) =>
  resolveEffect(world.authority, {
    tenantId: world.tenantId,
    actor: "ada",
    effectId,
    decision: "resend",
    reason: "asked",
  });

async function sentAgain(effectId: string): Promise<SendGrant> {
  expect(await resend(effectId)).toEqual({ kind: "resolved" });
  return (await claimSends(world, [effectId]))[0]!;
}

const linkLeftMs = (grant: SendGrant) => grant.request.facts.result!.linkExpires * 1000 - Date.now();

const pinnedMs = async () =>
  (await world.admin.query("select pin_until from object")).rows[0].pin_until.getTime() - Date.now();

it("an uncertain email that a person has sent again after its link has died goes out with one that works", async () => {
  const grant = await sending(world, email());
  await report(world, grant, UNKNOWN);
  await passDays(grant.effectId, 40);
  const again = await sentAgain(grant.effectId);
  expect(linkLeftMs(again)).toBeGreaterThan(7 * DAY_MS);
  // Nothing else is said otherwise than before, and the result stays as long as the link.
  const { result, ...facts } = grant.request.facts;
  expect(again.request).toEqual({
    ...grant.request,
    facts: { ...facts, result: { ...result, linkExpires: again.request.facts.result!.linkExpires } },
  });
  expect(await pinnedMs()).toBeGreaterThan(7 * DAY_MS);
});

it("a webhook that failed says the same under the same key, and anew once its receiver has forgotten the key", async () => {
  const grant = await sending(world, webhook({ idempotencyWindowMs: 20 * DAY_MS }));
  const never = { kind: "refused", transient: false, message: "400" } as const;
  await report(world, grant, never);
  await passDays(grant.effectId, 19);
  const before = await effect(world, grant.effectId);
  const same = await sentAgain(grant.effectId);
  expect(same.request).toEqual(before.request);
  expect(linkLeftMs(same)).toBeGreaterThan(7 * DAY_MS);
  const { linkExpires } = same.request.facts.result!;
  await report(world, same, never);
  await passDays(grant.effectId, 2);
  const anew = await sentAgain(grant.effectId);
  expect(anew.actionId).toBe(grant.actionId);
  expect(anew.request.facts.result!.linkExpires).toBeGreaterThan(linkExpires);
  expect(linkLeftMs(anew)).toBeGreaterThan(26 * DAY_MS);
});

it("a link that has died is renewed even under a key that is known: with it nothing would be sent at all", async () => {
  const grant = await sending(world, webhook());
  await report(world, grant, { kind: "refused", transient: false, message: "the link to its result has expired" });
  await passDays(grant.effectId, 9);
  await world.admin.query("update effect set first_sent_at = clock_timestamp()");
  expect(linkLeftMs(await sentAgain(grant.effectId))).toBeGreaterThan(7 * DAY_MS);
});

it("what has no result has no link to renew", async () => {
  const run = await running(world, { effects: [email()] });
  await world.complete(run.grant);
  const [one] = await effectsOf(world, run.grant.runId);
  const [grant] = await claimSends(world, [one!.id]);
  await report(world, grant!, UNKNOWN);
  expect((await sentAgain(one!.id)).request.facts.result).toBeNull();
});

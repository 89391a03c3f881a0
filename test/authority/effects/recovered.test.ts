import { afterEach, beforeEach, expect, it } from "vitest";
import type { Grant } from "../../../src/authority/attempts/grant.ts";
import { recoverAuthority } from "../../../src/authority/recovery/recover.ts";
import type { Effect } from "../../../src/domain/effects/definition.ts";
import type { Uuid } from "../../../src/kernel/ids.ts";
import { createWorld, type World } from "../../support/world.ts";
import { giveUp, replay } from "../dead-letters/letters.ts";
import { bear, hintsOf, running } from "../scenes.ts";
import { claimSends, effect, effectsOf, email, report, SENT, webhook } from "./scenes.ts";

/** What may have happened in commits that a restored copy knows nothing of. */

const DAY_MS = 86_400_000;

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
afterEach(async () => {
  await world.check();
  await world.close();
});

const recover = (change: { nothingLost?: boolean } = {}, authority = world.authority) =>
  recoverAuthority(authority, { actor: "operator:test", reason: "lost", anyway: true, nothingLost: false, ...change });

const newSchedule = (effects: readonly Effect[]) => world.newSchedule({ effects: [...effects] });

async function startAgain(runId: Uuid): Promise<Grant> {
  const { epoch } = (await world.admin.query("select epoch from authority_epoch")).rows[0];
  return (await world.claim(await hintsOf(world, runId), { epoch })).grants[0]!;
}

/** The run succeeds in the copy; answers its one effect. */
async function succeedsIn(grant: Grant) {
  await world.complete(grant, "a report");
  return (await effectsOf(world, grant.runId))[0]!;
}

it("an email of a run that was under way, and may have succeeded in what is lost, is not sent: a person decides", async () => {
  const { grant } = await running(world, { effects: [email()] });
  await recover();
  const born = await succeedsIn(grant);
  expect(born).toMatchObject({ state: "pending", in_doubt: true, attempts: 0 });
  expect(await claimSends(world, [born.id])).toEqual([]);
  expect(await effect(world, born.id)).toMatchObject({
    state: "uncertain",
    error_message: "it may have been sent in commits that are lost",
  });
});

it("a run whose very birth is lost comes to the same name again, and its email is in doubt", async () => {
  const scheduleId = await newSchedule([email()]);
  await recover();
  const born = await succeedsIn(await startAgain(await bear(world, scheduleId, 60_000)));
  expect(born).toMatchObject({ state: "pending", in_doubt: true });
});

it("a run that had failed, and may have been replayed since, is in doubt when it is replayed", async () => {
  const { runId } = await giveUp(world, await newSchedule([email()]), 60_000);
  await recover();
  await replay(world, runId);
  expect(await succeedsIn(await startAgain(runId))).toMatchObject({ in_doubt: true });
});

it("a webhook is called under the same key for as long as its receiver knows it, counted from when the run was due", async () => {
  const young = await running(world, { effects: [webhook()] });
  const old = await world.newSchedule({ effects: [webhook()] });
  const oldRun = await bear(world, old, DAY_MS + 60_000);
  await recover();
  const known = await succeedsIn(young.grant);
  const [grant] = await claimSends(world, [known.id]);
  expect(grant).toMatchObject({ actionId: known.action_id, attempt: 1 });
  expect(await report(world, grant!, SENT)).toEqual({ kind: "settled", state: "sent" });
  const forgotten = await succeedsIn(await startAgain(oldRun));
  expect(await claimSends(world, [forgotten.id])).toEqual([]);
  expect(await effect(world, forgotten.id)).toMatchObject({ state: "uncertain" });
});

it.each([
  ["resend", 1, { state: "sending" }],
  ["drop", 0, { state: "resolved", resolution: "dropped" }],
] as const)("an email with onUncertain %s is dealt with as it says", async (onUncertain, sends, after) => {
  const { grant } = await running(world, { effects: [email({ onUncertain })] });
  await recover();
  const born = await succeedsIn(grant);
  expect(await claimSends(world, [born.id])).toHaveLength(sends);
  expect(await effect(world, born.id)).toMatchObject(after);
});

it("a run that was due after the recovery is in no doubt", async () => {
  const { grant } = await running(world, { effects: [email()] });
  await recover();
  await world.admin.query("update recovery set recovered_at = recovered_at - interval '1 hour'");
  expect(await succeedsIn(grant)).toMatchObject({ in_doubt: false, first_sent_at: null, error_message: null });
});

it("a recovery that has lost nothing casts no doubt, nor does it take away an earlier one's", async () => {
  const [sure, unsure] = [await running(world, { effects: [email()] }), await running(world, { effects: [email()] })];
  await recover({ nothingLost: true });
  expect(await succeedsIn(sure.grant)).toMatchObject({ in_doubt: false });
  await recover();
  await recover({ nothingLost: true });
  expect(await succeedsIn(unsure.grant)).toMatchObject({ in_doubt: true });
});

it("a completion and a recovery at once: whoever comes first, the email is in doubt", async () => {
  const [first, second] = [await running(world, { effects: [email()] }), await running(world, { effects: [email()] })];
  const completing = world.faults.hold("complete:written");
  const early = world.complete(first.grant);
  await completing.arrived;
  const waiting = recover({}, world.another());
  await world.lockWaits();
  completing.release();
  await early;
  expect(await waiting).toMatchObject({ kind: "recovered", effects: 1 });
  const [ofFirst] = await effectsOf(world, first.grant.runId);
  expect(ofFirst).toMatchObject({ in_doubt: true, error_message: "it may have been sent in commits that are lost" });

  // A second recovery: the first casts no doubt on this run any more.
  await world.admin.query("update recovery set recovered_at = recovered_at - interval '1 hour'");
  const recovering = world.faults.hold("recover:written");
  const recovery = recover();
  await recovering.arrived;
  const late = world.complete(second.grant);
  await world.lockWaits();
  recovering.release();
  await recovery;
  await late;
  expect(await effectsOf(world, second.grant.runId)).toMatchObject([{ in_doubt: true }]);
});

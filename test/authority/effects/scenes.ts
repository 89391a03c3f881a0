import { type SendGrant, sendEffects } from "../../../src/authority/effects/send.ts";
import { settleEffects } from "../../../src/authority/effects/settle.ts";
import type { Effect } from "../../../src/domain/effects/definition.ts";
import { effectSchema } from "../../../src/domain/effects/definition.ts";
import type { SendReport } from "../../../src/domain/effects/settlement.ts";
import { mintId, type Uuid } from "../../../src/kernel/ids.ts";
import type { World } from "../../support/world.ts";
import { running } from "../scenes.ts";

type Change = Record<string, unknown>;

export function email(change: Change = {}): Effect {
  return effectSchema.parse({ name: "mail", kind: "email", to: ["ops@example.com"], subject: "Done", ...change });
}

export function webhook(change: Change = {}): Effect {
  return effectSchema.parse({ name: "hook", kind: "webhook", url: "https://hooks.example.com/x", ...change });
}

export type EffectLine = {
  id: Uuid;
  run_id: Uuid;
  object_id: Uuid | null;
  name: string;
  action_id: string;
  state: string;
  attempts: number;
  budget_attempts: number;
  in_doubt: boolean;
  resolution: string | null;
  external_id: string | null;
  error_message: string | null;
  first_sent_at: Date | null;
  next_attempt_at: Date;
  request: { facts: Record<string, unknown> };
};

export async function effectsOf(world: World, runId: Uuid): Promise<EffectLine[]> {
  const { rows } = await world.admin.query("select * from effect where run_id = $1 order by name", [runId]);
  return rows;
}

export async function effect(world: World, id: Uuid): Promise<EffectLine> {
  return (await world.admin.query("select * from effect where id = $1", [id])).rows[0];
}

/** A run that succeeded and whose effects wait to be sent. */
export async function succeeded(world: World, effects: readonly Effect[], text = "a report") {
  const { scheduleId, grant } = await running(world, { effects: [...effects] });
  await world.complete(grant, text);
  return { scheduleId, grant, effects: await effectsOf(world, grant.runId) };
}

export function claimSends(
  world: World,
  effectIds: readonly Uuid[],
  change: { claimId?: Uuid; repeated?: boolean; sender?: string } = {},
): Promise<SendGrant[]> {
  return sendEffects(world.authority, {
    claimId: change.claimId ?? mintId(Date.now(), 0),
    sender: change.sender ?? "sender-a",
    effectIds,
    leaseMs: 60_000,
    repeated: change.repeated ?? false,
  });
}

/** One effect of a succeeded run, being sent. */
export async function sending(world: World, one: Effect): Promise<SendGrant> {
  const { effects } = await succeeded(world, [one]);
  const [grant] = await claimSends(world, [effects[0]!.id]);
  return grant!;
}

export async function report(world: World, grant: Pick<SendGrant, "effectId" | "fence">, said: SendReport) {
  const { effectId, fence } = grant;
  return (await settleEffects(world.authority, [{ effectId, fence, report: said }]))[0]!;
}

export const SENT: SendReport = { kind: "sent", externalId: "250 queued", message: null };
export const UNKNOWN = { kind: "unknown", message: "the connection was lost" } as const;

export async function expireSend(world: World, effectId: Uuid): Promise<void> {
  await world.admin.query("update effect set lease_until = clock_timestamp() - interval '1 second' where id = $1", [
    effectId,
  ]);
}

/** Its next attempt is due now. */
export async function makeSendable(world: World, effectId: Uuid): Promise<void> {
  await world.admin.query("update effect set next_attempt_at = clock_timestamp() where id = $1", [effectId]);
}

/** As if its first attempt had been that long ago. */
export async function ageSend(world: World, effectId: Uuid, ms: number): Promise<void> {
  await world.admin.query(
    "update effect set first_sent_at = clock_timestamp() - $2 * interval '1 ms', budget_from = clock_timestamp() - $2 * interval '1 ms' where id = $1",
    [effectId, ms],
  );
}

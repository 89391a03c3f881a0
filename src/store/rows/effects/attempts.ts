import type { SendOutcome } from "../../../domain/effects/states.ts";
import type { Fence } from "../../../domain/fence.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

/** Attempts to send, one row each. */

const INSERT = sql(
  "effect_attempts_insert",
  `insert into effect_attempt (effect_id, n, fence, sender, started_at)
   select effect_id, n, fence, $4, $5
     from unnest($1::uuid[], $2::int[], $3::bigint[]) as a (effect_id, n, fence)`,
);
const READ = sql(
  "effect_attempts_read",
  `select a.effect_id, a.n, a.fence, a.outcome
     from unnest($1::uuid[], $2::bigint[]) as k (effect_id, fence)
     join effect_attempt a on a.effect_id = k.effect_id and a.fence = k.fence`,
);
const CLOSE = sql(
  "effect_attempts_close",
  `update effect_attempt a
      set ended_at = $6, outcome = e.outcome, external_id = e.external_id, error_message = e.error_message
     from unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::text[])
       as e (effect_id, n, outcome, external_id, error_message)
    where a.effect_id = e.effect_id and a.n = e.n`,
);

export type SendAttempt = { effect_id: Uuid; n: number; fence: Fence; outcome: SendOutcome | null };
type Begun = { effectId: Uuid; n: number; fence: Fence };
type Ended = { effectId: Uuid; n: number; outcome: SendOutcome; externalId: string | null; message: string | null };

export async function insertSendAttempts(
  tx: Queryable,
  attempts: readonly Begun[],
  sender: string,
  nowAt: Instant,
): Promise<void> {
  if (attempts.length === 0) return;
  await tx.query(INSERT, [
    attempts.map((one) => one.effectId),
    attempts.map((one) => one.n),
    attempts.map((one) => one.fence),
    sender,
    instantText(nowAt),
  ]);
}

/** The attempts that held these fences; their effects are locked. */
export function readSendAttempts(
  tx: Queryable,
  keys: readonly { effectId: Uuid; fence: Fence }[],
): Promise<SendAttempt[]> {
  return tx.query<SendAttempt>(READ, [keys.map((key) => key.effectId), keys.map((key) => key.fence)]);
}

export async function closeSendAttempts(tx: Queryable, ends: readonly Ended[], nowAt: Instant): Promise<void> {
  if (ends.length === 0) return;
  await tx.query(CLOSE, [
    ends.map((end) => end.effectId),
    ends.map((end) => end.n),
    ends.map((end) => end.outcome),
    ends.map((end) => end.externalId),
    ends.map((end) => end.message),
    instantText(nowAt),
  ]);
}

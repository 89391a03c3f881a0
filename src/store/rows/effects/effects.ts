import type { EffectRequest } from "../../../domain/effects/facts.ts";
import type { EffectKind, EffectState, OnUncertain, Resolution } from "../../../domain/effects/states.ts";
import type { Fence } from "../../../domain/fence.ts";
import type { Instant } from "../../../kernel/clock.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";
import { instantText } from "../../values.ts";

/** One thing to be done outside because a result was accepted. The row is the intent: nothing else names what is due. */
export type EffectRow = {
  id: Uuid;
  tenant_id: Uuid;
  run_id: Uuid;
  object_id: Uuid | null;
  kind: EffectKind;
  name: string;
  action_id: string;
  request: EffectRequest;
  state: EffectState;
  next_attempt_at: Instant;
  attempts: number;
  budget_attempts: number;
  budget_from: Instant;
  /** An attempt of this budget may have happened. */
  in_doubt: boolean;
  /** One before a person's resend may have. */
  doubted_before: boolean;
  fence: Fence | null;
  claim_id: Uuid | null;
  lease_until: Instant | null;
  first_sent_at: Instant | null;
  external_id: string | null;
  error_message: string | null;
  resolution: Resolution | null;
  resolved_by: string | null;
  settled_at: Instant | null;
};

const COLUMNS = `id, tenant_id, run_id, object_id, kind, name, action_id, request, state, next_attempt_at, attempts,
  budget_attempts, budget_from, in_doubt, doubted_before, fence, claim_id, lease_until, first_sent_at, external_id,
  error_message, resolution, resolved_by, settled_at`;

const INSERT = sql(
  "effects_insert",
  `insert into effect (id, tenant_id, run_id, schedule_id, object_id, kind, name, action_id, request, on_uncertain,
                       in_doubt, first_sent_at, error_message, next_attempt_at, budget_from, created_at)
   select e.*, $14, $14, $14
     from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::uuid[], $5::uuid[], $6::text[], $7::text[], $8::text[],
                 $9::jsonb[], $10::text[], $11::boolean[], $12::timestamptz[], $13::text[]) as e`,
);
const LOCK = sql("effects_lock", `select ${COLUMNS} from effect where id = any($1::uuid[]) order by id for update`);
const LOCK_SKIPPING = sql(
  "effects_lock_skipping",
  `select ${COLUMNS} from effect where id = any($1::uuid[]) order by id for update skip locked`,
);
const UPDATE = sql(
  "effects_update",
  `update effect e
      set state = u.state, next_attempt_at = u.next_attempt_at, attempts = u.attempts,
          budget_attempts = u.budget_attempts, budget_from = u.budget_from, in_doubt = u.in_doubt,
          doubted_before = u.doubted_before, fence = u.fence, claim_id = u.claim_id, lease_until = u.lease_until,
          first_sent_at = u.first_sent_at, external_id = u.external_id, error_message = u.error_message,
          resolution = u.resolution, resolved_by = u.resolved_by, settled_at = u.settled_at
     from unnest($1::uuid[], $2::text[], $3::timestamptz[], $4::int[], $5::int[], $6::timestamptz[], $7::boolean[],
                 $8::bigint[], $9::uuid[], $10::timestamptz[], $11::timestamptz[], $12::text[], $13::text[],
                 $14::text[], $15::text[], $16::timestamptz[], $17::boolean[])
       as u (id, state, next_attempt_at, attempts, budget_attempts, budget_from, in_doubt, fence, claim_id, lease_until,
             first_sent_at, external_id, error_message, resolution, resolved_by, settled_at, doubted_before)
    where e.id = u.id`,
);
const FIND_LAPSED = sql(
  "effects_find_lapsed",
  `select id from effect where state = 'sending' and lease_until < clock_timestamp() order by lease_until limit $1`,
);

type Born = "id" | "tenant_id" | "run_id" | "object_id" | "action_id" | "request";
type Doubt = "in_doubt" | "first_sent_at" | "error_message";
export type NewEffect = Pick<EffectRow, Born | Doubt> & { schedule_id: Uuid | null };

export async function insertEffects(tx: Queryable, effects: readonly NewEffect[], nowAt: Instant): Promise<void> {
  if (effects.length === 0) return;
  await tx.query(INSERT, [
    effects.map((one) => one.id),
    effects.map((one) => one.tenant_id),
    effects.map((one) => one.run_id),
    effects.map((one) => one.schedule_id),
    effects.map((one) => one.object_id),
    effects.map((one) => one.request.effect.kind),
    effects.map((one) => one.request.effect.name),
    effects.map((one) => one.action_id),
    effects.map((one) => one.request),
    effects.map((one): OnUncertain => one.request.effect.onUncertain),
    effects.map((one) => one.in_doubt),
    effects.map((one) => one.first_sent_at),
    effects.map((one) => one.error_message),
    instantText(nowAt),
  ]);
}

/** Locks by id, waiting. */
export function lockEffects(tx: Queryable, ids: readonly Uuid[]): Promise<EffectRow[]> {
  return tx.query<EffectRow>(LOCK, [ids]);
}

/** Locks those that nobody else holds. */
export function lockEffectsSkipping(tx: Queryable, ids: readonly Uuid[]): Promise<EffectRow[]> {
  return tx.query<EffectRow>(LOCK_SKIPPING, [ids]);
}

/** Writes whatever of an effect may change; its rows are locked. */
export async function updateEffects(tx: Queryable, rows: readonly EffectRow[]): Promise<void> {
  if (rows.length === 0) return;
  await tx.query(UPDATE, [
    rows.map((row) => row.id),
    rows.map((row) => row.state),
    rows.map((row) => row.next_attempt_at),
    rows.map((row) => row.attempts),
    rows.map((row) => row.budget_attempts),
    rows.map((row) => row.budget_from),
    rows.map((row) => row.in_doubt),
    rows.map((row) => row.fence),
    rows.map((row) => row.claim_id),
    rows.map((row) => row.lease_until),
    rows.map((row) => row.first_sent_at),
    rows.map((row) => row.external_id),
    rows.map((row) => row.error_message),
    rows.map((row) => row.resolution),
    rows.map((row) => row.resolved_by),
    rows.map((row) => row.settled_at),
    rows.map((row) => row.doubted_before),
  ]);
}

/** Effects whose senders' leases seem over; lapseEffects decides under their locks. */
export async function findLapsedEffects(db: Queryable, limit: number): Promise<Uuid[]> {
  return (await db.query<{ id: Uuid }>(FIND_LAPSED, [limit])).map((row) => row.id);
}

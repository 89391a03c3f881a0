import type { Effect } from "../../domain/effects/definition.ts";
import type { EffectKind, EffectState, Resolution, SendOutcome } from "../../domain/effects/states.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** An effect as people see it. Instants are epoch ms. */
export type EffectView = {
  id: Uuid;
  runId: Uuid;
  scheduleId: Uuid | null;
  name: string;
  kind: EffectKind;
  state: EffectState;
  actionId: string;
  attempts: number;
  /** What was declared. */
  effect: Effect;
  externalId: string | null;
  message: string | null;
  resolution: Resolution | null;
  resolvedBy: string | null;
  createdAt: Instant;
  firstSentAt: Instant | null;
  /** When it is tried next; null: not by itself. */
  nextAttemptAt: Instant | null;
  settledAt: Instant | null;
};

const COLUMNS = `id, run_id as "runId", schedule_id as "scheduleId", name, kind, state, action_id as "actionId", attempts,
  request -> 'effect' as effect, external_id as "externalId", error_message as message, resolution,
  resolved_by as "resolvedBy", created_at as "createdAt", first_sent_at as "firstSentAt",
  case when state = 'pending' then next_attempt_at end as "nextAttemptAt", settled_at as "settledAt"`;

const FIND = sql("read_effect", `select ${COLUMNS} from effect where id = $2 and tenant_id = $1`);
const LIST = sql(
  "read_effects",
  `select ${COLUMNS} from effect
    where tenant_id = $1 and id < coalesce($2::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
      and ($4::text is null or state = $4) and ($5::text is null or kind = $5)
      and ($6::uuid is null or schedule_id = $6)
    order by id desc limit $3`,
);
const OF_RUN = sql(
  "read_effects_of_run",
  `select ${COLUMNS} from effect where run_id = $2 and tenant_id = $1 order by name`,
);
const ATTEMPTS = sql(
  "read_effect_attempts",
  `select a.n, a.sender, a.started_at as "startedAt", a.ended_at as "endedAt", a.outcome, a.external_id as "externalId",
          a.error_message as message
     from effect_attempt a join effect e on e.id = a.effect_id
    where a.effect_id = $2 and e.tenant_id = $1
    order by a.n`,
);

export type SendAttemptView = {
  n: number;
  sender: string;
  startedAt: Instant;
  endedAt: Instant | null;
  /** null: it is being made. */
  outcome: SendOutcome | null;
  externalId: string | null;
  message: string | null;
};

export async function findEffect(db: Queryable, tenantId: Uuid, id: Uuid): Promise<EffectView | undefined> {
  return (await db.query<EffectView>(FIND, [tenantId, id]))[0];
}

/** Newest first; `afterId` is the last id of the page before. */
export function listEffects(
  db: Queryable,
  tenantId: Uuid,
  page: { afterId?: Uuid; limit: number; state?: EffectState; kind?: EffectKind; scheduleId?: Uuid },
): Promise<EffectView[]> {
  const { afterId = null, limit, state = null, kind = null, scheduleId = null } = page;
  return db.query<EffectView>(LIST, [tenantId, afterId, limit, state, kind, scheduleId]);
}

export function listEffectsOfRun(db: Queryable, tenantId: Uuid, runId: Uuid): Promise<EffectView[]> {
  return db.query<EffectView>(OF_RUN, [tenantId, runId]);
}

export function listSendAttempts(db: Queryable, tenantId: Uuid, effectId: Uuid): Promise<SendAttemptView[]> {
  return db.query<SendAttemptView>(ATTEMPTS, [tenantId, effectId]);
}

import type { EffectKind } from "../../../domain/effects/states.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** What is to be sent, found without locks: whoever claims it decides under them. */

const NEXT = sql(
  "effects_next_due",
  `select greatest(0, extract(epoch from min(next_attempt_at) - clock_timestamp()) * 1000)::float8 as "inMs"
     from effect where state = 'pending' and kind = $1`,
);
/**
 * From tenant to tenant along the index, some of each; then the first of every tenant before anybody's second, counting
 * what the asker is sending already, so that neither one tenant's backlog nor its slow receivers keep anybody waiting.
 */
const DUE = sql(
  "effects_due",
  `with recursive tenants as (
     (select tenant_id from effect where state = 'pending' and kind = $1 order by tenant_id limit 1)
     union all
     select (select e.tenant_id from effect e where e.state = 'pending' and e.kind = $1 and e.tenant_id > t.tenant_id
              order by e.tenant_id limit 1)
       from tenants t where t.tenant_id is not null)
   select d.id
     from tenants t
     left join (select s.tenant_id, count(*) as n from unnest($4::uuid[]) as s (tenant_id) group by 1) busy
       on busy.tenant_id = t.tenant_id
    cross join lateral (
      select e.id, e.next_attempt_at, coalesce(busy.n, 0) + row_number() over (order by e.next_attempt_at) as place
        from effect e
       where e.state = 'pending' and e.kind = $1 and e.tenant_id = t.tenant_id and e.next_attempt_at <= clock_timestamp()
       order by e.next_attempt_at
       limit greatest(0, $2 - coalesce(busy.n, 0))) d
    order by d.place, d.next_attempt_at
    limit $3`,
);

/** In how many ms (0: now) the next effect of this kind is due; null: none waits. */
export async function nextDueIn(db: Queryable, kind: EffectKind): Promise<number | null> {
  return (await db.query<{ inMs: number | null }>(NEXT, [kind]))[0]!.inMs;
}

/** How many of one tenant and of all; `sending`: whose the asker is sending, one entry for each. */
export type DueLimits = { perTenant: number; all: number; sending: readonly Uuid[] };

export async function findDueEffects(db: Queryable, kind: EffectKind, limits: DueLimits): Promise<Uuid[]> {
  const { perTenant, all, sending } = limits;
  return (await db.query<{ id: Uuid }>(DUE, [kind, perTenant, all, sending])).map((row) => row.id);
}

const GAUGES = sql(
  "effects_gauges",
  `select k.kind,
          coalesce((select extract(epoch from clock_timestamp() - min(next_attempt_at)) * 1000 from effect
                     where state = 'pending' and kind = k.kind and next_attempt_at < clock_timestamp()), 0)::float8
            as "overdueMs",
          (select count(*) from (select from effect where state = 'uncertain' and kind = k.kind limit 10000) u)::int
            as uncertain
     from unnest($1::text[]) as k (kind)`,
);

/** By kind: how late the oldest due effect is, and how many (10,000 at most are counted) wait for a person. */
export function readEffectGauges(
  db: Queryable,
  kinds: readonly EffectKind[],
): Promise<{ kind: EffectKind; overdueMs: number; uncertain: number }[]> {
  return db.query(GAUGES, [kinds]);
}

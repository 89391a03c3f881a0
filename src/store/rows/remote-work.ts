import type { Lane } from "../../domain/states.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type Queryable, sql } from "../database.ts";

/** Rows of class remote, which tenants' own workers ask for by the name of their job. */
export type RemoteRow = { id: bigint; tenant_id: Uuid; job: string; lane: Lane };

/**
 * Of each job at most `k` rows that may start now: strict before normal before late, then by instant, the first `late_first`
 * of the late ones before all. Rows in $5 were just told to somebody.
 */
const FIND = sql(
  "remote_work_find",
  `select r.id, r.tenant_id, r.job, r.lane
     from unnest($1::uuid[], $2::text[], $3::int[], $4::int[]) as w (tenant_id, job, k, late_first)
    cross join lateral (
      select o.id, o.tenant_id, o.job, o.lane, o.available_at, o.lane = 2 and o.nth <= w.late_first as is_early
        from (values (0::smallint), (1::smallint), (2::smallint)) as p (lane)
       cross join lateral (
         select id, tenant_id, job, lane, available_at, row_number() over (order by available_at, id) as nth
           from outbox
          where kind = 'run' and class = 'remote' and tenant_id = w.tenant_id and job = w.job and lane = p.lane
            and available_at <= (select clock_timestamp()) and id <> all ($5::bigint[])
          order by available_at, id limit w.k) o
       order by is_early desc, o.lane, o.available_at, o.id
       limit w.k) r
    order by r.tenant_id, r.is_early desc, r.lane, r.available_at, r.id`,
);

export type RemoteShare = { tenantId: Uuid; job: string; rows: number; lateFirst: number };

/** In the order in which a tenant's rows should go. */
export function findRemoteRows(
  db: Queryable,
  wanted: readonly RemoteShare[],
  told: readonly bigint[],
): Promise<RemoteRow[]> {
  return db.query<RemoteRow>(FIND, [
    wanted.map((one) => one.tenantId),
    wanted.map((one) => one.job),
    wanted.map((one) => one.rows),
    wanted.map((one) => one.lateFirst),
    told,
  ]);
}

import type { Uuid } from "../../../kernel/ids.ts";
import { type Queryable, sql } from "../../database.ts";

/** Tenants as the board's front page lists them. */
export type TenantLane = { tenantId: Uuid; name: string; class: string; running: number };

const BUSIEST = sql(
  "busiest_lanes",
  `select u.tenant_id as "tenantId", t.name, u.class, u.running
     from usage u join tenant t on t.id = u.tenant_id
    order by u.running desc, t.name, u.class limit $1`,
);

/** Lanes that have run something, those with the most running attempts first. */
export function listBusiestLanes(db: Queryable, most: number): Promise<TenantLane[]> {
  return db.query<TenantLane>(BUSIEST, [most]);
}

type NamedTenant = { id: Uuid; name: string };

const NAMED = sql(
  "tenants_named",
  `select id, name from tenant
    where position(lower($1) in lower(name)) > 0 order by length(name), name limit $2`,
);

/** Tenants whose names hold `part`, the shortest names first. */
export function listTenantsNamed(db: Queryable, part: string, most: number): Promise<NamedTenant[]> {
  return db.query<NamedTenant>(NAMED, [part, most]);
}

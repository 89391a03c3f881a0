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

export type NamedTenant = { id: Uuid; name: string; status: string };

const NAMED = sql(
  "tenants_named",
  `select id, name, status from tenant
    where position(lower($1) in lower(name)) > 0 order by length(name), name limit $2`,
);

/** Tenants whose names hold `part`, the shortest names first. */
export function listTenantsNamed(db: Queryable, part: string, most: number): Promise<NamedTenant[]> {
  return db.query<NamedTenant>(NAMED, [part, most]);
}

const FIND = sql("tenant_on_board", "select id, name, status from tenant where id = $1 or name = $2");

/** The tenant of this id, or else of this name. */
export async function findNamedTenant(
  db: Queryable,
  ref: { id: Uuid } | { name: string },
): Promise<NamedTenant | undefined> {
  const [id, name] = "id" in ref ? [ref.id, null] : [null, ref.name];
  return (await db.query<NamedTenant>(FIND, [id, name]))[0];
}

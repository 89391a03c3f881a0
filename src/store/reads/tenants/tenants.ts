import type { OutboundRules } from "../../../domain/outbound/rules.ts";
import type { Instant } from "../../../kernel/clock.ts";
import { readId, type Uuid } from "../../../kernel/ids.ts";
import { storableText } from "../../../kernel/storable.ts";
import { type Queryable, sql } from "../../database.ts";

export const TENANT_STATUSES = ["active", "suspended"] as const;
export type TenantStatus = (typeof TENANT_STATUSES)[number];

export type TenantView = {
  id: Uuid;
  name: string;
  status: TenantStatus;
  /** Names of the job types it may use; null: all. */
  allowedJobs: readonly string[] | null;
  /** Where its calls may lead; null: wherever anybody's may. */
  outbound: OutboundRules | null;
  createdAt: Instant;
};

/** Of names, in UTF-16 units; the API takes none that is longer. */
export const LONGEST_NAME = 200;

const VIEW = `id, name, status, to_jsonb(allowed_jobs) as "allowedJobs", outbound, created_at as "createdAt"`;
const FIND = sql("read_tenant", `select ${VIEW} from tenant where id = $1`);
const FIND_BY_NAME = sql("read_tenant_by_name", `select ${VIEW} from tenant where name = $1`);
const LIST = sql(
  "read_tenants",
  `select ${VIEW} from tenant
    where id < coalesce($1::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff') and ($3::text is null or status = $3)
    order by id desc limit $2`,
);

export async function findTenant(db: Queryable, id: Uuid): Promise<TenantView | undefined> {
  return (await db.query<TenantView>(FIND, [id]))[0];
}

export async function findTenantByName(db: Queryable, name: string): Promise<TenantView | undefined> {
  return (await db.query<TenantView>(FIND_BY_NAME, [name]))[0];
}

/** The tenant of this id (`ten_…`) or else of this name, as people write it: any text may be asked for. */
export async function findTenantOf(db: Queryable, ref: string): Promise<TenantView | undefined> {
  const id = readId("ten", ref);
  const found = id === undefined ? undefined : await findTenant(db, id);
  return found ?? findTenantByName(db, storableText(ref, LONGEST_NAME));
}

/** Newest first; `afterId` is the last id of the page before. */
export function listTenants(
  db: Queryable,
  page: { afterId?: Uuid; limit: number; status?: TenantStatus },
): Promise<TenantView[]> {
  return db.query<TenantView>(LIST, [page.afterId ?? null, page.limit, page.status ?? null]);
}

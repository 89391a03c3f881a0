import type { Instant } from "../../kernel/clock.ts";
import { NIL_ID, type Uuid } from "../../kernel/ids.ts";
import { sql } from "../../store/database.ts";
import { countPublished, findPublished, type PublishedRow } from "../../store/rows/dispatchable.ts";
import { instantText } from "../../store/values.ts";
import type { Authority } from "../authority.ts";
import { readServer } from "../server.ts";

const READ_LANES = sql(
  "published_read_lanes",
  `select tenant_id as "tenantId", class from usage
    where (tenant_id, class) > ($1::uuid, $2::text) order by tenant_id, class limit $3`,
);
const READ_PUBLICATIONS = sql(
  "published_read_publications",
  "select id, publish_no from outbox where id = any($1::bigint[]) and published_at is not null",
);

/** Where a walk over published rows has got to. */
export type PublishedAfter = { publishedAt: Instant; id: bigint };
export const FROM_THE_START: PublishedAfter = { publishedAt: 0, id: 0n };

/** Rows published at least `ageMs` ago, oldest first; read without locks, for the hint sweeper. */
export function readPublished(
  authority: Authority,
  ageMs: number,
  after: PublishedAfter,
  limit: number,
): Promise<PublishedRow[]> {
  return findPublished(authority.db, ageMs, { publishedAt: instantText(after.publishedAt), id: after.id }, limit);
}

/** The authority's epoch, which hint ids carry. */
export async function readEpoch(authority: Authority): Promise<number> {
  return (await readServer(authority.db, 0)).epoch;
}

/** Lanes that have rows in Redis, or should have. */
export async function readPublishedLanes(authority: Authority): Promise<{ tenantId: Uuid; class: string }[]> {
  return (await countPublished(authority.db)).map((row) => ({ tenantId: row.tenant_id, class: row.class }));
}

/** Where a walk over all lanes has got to. */
export type LaneAfter = { tenantId: Uuid; class: string };
export const BEFORE_ALL_LANES: LaneAfter = { tenantId: NIL_ID, class: "" };

/** Lanes that have ever started a run, in order. */
export function readLanesAfter(authority: Authority, after: LaneAfter, limit: number): Promise<LaneAfter[]> {
  return authority.db.query<LaneAfter>(READ_LANES, [after.tenantId, after.class, limit]);
}

/** Those publications that are not the current one of their row any more: it was claimed, or published again. */
export async function findStalePublications<One extends { rowId: bigint; epoch: number; publishNo: number }>(
  authority: Authority,
  publications: readonly One[],
): Promise<One[]> {
  if (publications.length === 0) return [];
  const ids = publications.map((one) => one.rowId);
  const rows = await authority.db.query<{ id: bigint; publish_no: number }>(READ_PUBLICATIONS, [ids]);
  const epoch = await readEpoch(authority);
  const current = new Map(rows.map((row) => [row.id, row.publish_no]));
  return publications.filter((one) => one.epoch !== epoch || current.get(one.rowId) !== one.publishNo);
}

import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import { countPublished, findPublished, type PublishedRow } from "../store/dispatchable.ts";
import { instantText } from "../store/values.ts";
import type { Authority } from "./authority.ts";
import { readServer } from "./server.ts";

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

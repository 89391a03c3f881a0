import type { Authority } from "../authority/authority.ts";
import { unpublish } from "../authority/dispatch/unpublish.ts";
import type { Publisher } from "../hints/publisher.ts";
import type { Uuid } from "../kernel/ids.ts";

type MarkedRow = {
  id: bigint;
  tenant_id: Uuid;
  class: string;
  lane: number;
  runs: readonly Uuid[];
  publish_no: number;
  published_at?: number | null;
};

/** Hands rows that are marked and committed to Redis, and takes the mark back from those it did not take. */
export type PublishMarked = (rows: readonly MarkedRow[], epoch: number) => Promise<number>;

/**
 * Mark, commit, then speak to Redis: no lock of PostgreSQL is ever held while Redis is waited for. A crash in between
 * leaves marked rows without hints; the hint sweeper finds them within seconds.
 */
export function createPublishMarked(authority: Authority, publisher: Publisher): PublishMarked {
  const { shard } = authority.settings;
  return async (rows, epoch) => {
    const marked = rows
      .filter((row) => row.published_at !== null)
      .map((row) => ({
        rowId: row.id,
        publishNo: row.publish_no,
        epoch,
        shard,
        tenantId: row.tenant_id,
        class: row.class,
        lane: row.lane,
        runCount: row.runs.length,
      }));
    if (marked.length === 0) return 0;
    const { published, failed } = await publisher.publish(marked);
    for (const row of published) authority.metrics.hintsPublished.inc({ class: row.class });
    await unpublish(authority, failed);
    return published.length;
  };
}

/** Without Redis nothing is ever marked. */
export const publishNothing: PublishMarked = async () => 0;

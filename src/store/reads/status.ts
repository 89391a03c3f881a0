import type { Instant } from "../../kernel/clock.ts";
import { type Queryable, sql } from "../database.ts";

/** Younger rows may still be invisible to a reader: no verb takes longer. */
const SETTLED_MS = 5000;

const NOW = sql("read_now", "select clock_timestamp() as now");

/** Up to where history is complete (database time): the watermark, and the bound of a list's first page. */
export async function readWatermark(db: Queryable): Promise<Instant> {
  return (await db.query<{ now: Instant }>(NOW))[0]!.now - SETTLED_MS;
}

export type Backlog = {
  now: Instant;
  /** Due instant of the cursor that is furthest behind; null when none is due. */
  oldestDueAt: Instant | null;
  /** When the oldest row that waits to be published became available; null when none waits. */
  oldestUnpublishedAt: Instant | null;
};

// statement_timestamp() and not clock_timestamp(): only a stable function may bound an index walk (measured with 50,000
// cursors: 1,769 ms with the volatile one).
const BACKLOG = sql(
  "read_backlog",
  `select clock_timestamp() as now,
          (select next_due_at from schedule_cursor
            where next_due_at <= statement_timestamp() order by next_due_at limit 1) as "oldestDueAt",
          (select min(available_at) from outbox
            where published_at is null and kind = 'run' and available_at <= statement_timestamp()) as "oldestUnpublishedAt"`,
);

export async function readBacklog(db: Queryable): Promise<Backlog> {
  return (await db.query<Backlog>(BACKLOG))[0]!;
}

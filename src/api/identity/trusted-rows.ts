import { LRUCache } from "lru-cache";
import type { Clock } from "../../kernel/clock.ts";

/** A row is trusted for so many ms: what was revoked or suspended may work for so long elsewhere. */
const TRUST_MS = 5_000;
const MOST_ROWS = 10_000;

/**
 * Reads a row by its key, and goes by what was read for 5 s. What was not found is looked for again each time. However
 * many ask at once, it is read once: a burst of calls is no burst of reads.
 */
export function trustedRows<Row extends object>(
  clock: Clock,
  read: (key: string) => Promise<Row | undefined>,
): (key: string) => Promise<Row | undefined> {
  const rows = new LRUCache<string, { row: Row; readAt: number }>({ max: MOST_ROWS });
  const reading = new Map<string, Promise<Row | undefined>>();

  async function readNow(key: string): Promise<Row | undefined> {
    const readAt = clock.monotonic();
    const row = await read(key);
    if (row === undefined) rows.delete(key);
    else rows.set(key, { row, readAt });
    return row;
  }

  return async (key) => {
    const cached = rows.get(key);
    if (cached !== undefined && clock.monotonic() - cached.readAt < TRUST_MS) return cached.row;
    let underWay = reading.get(key);
    if (underWay === undefined) {
      underWay = readNow(key).finally(() => reading.delete(key));
      reading.set(key, underWay);
    }
    return underWay;
  };
}

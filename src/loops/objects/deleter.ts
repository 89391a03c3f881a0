import { messageOf, PunctualError } from "../../kernel/errors.ts";
import type { Log } from "../../kernel/log.ts";
import type { Metrics } from "../../kernel/metrics.ts";

const SIDE_BY_SIDE = 8;

export type Deleter<Item> = (item: Item) => Promise<void>;

/**
 * Deletes some objects side by side. One that is refused stops no other; a store that has refused every one of the first
 * few is not asked for the rest: they are in neither list, and their turn comes again.
 */
export async function deleteAll<Item>(
  items: readonly Item[],
  remove: Deleter<Item>,
  deps: { log: Log; metrics: Metrics; signal: AbortSignal },
): Promise<{ deleted: Item[]; failed: Item[] }> {
  const deleted: Item[] = [];
  const failed: Item[] = [];
  const waiting = [...items];
  let reason: unknown;
  let asked = 0;
  const isHopeless = () => deleted.length === 0 && asked >= SIDE_BY_SIDE;

  async function work(): Promise<void> {
    while (!deps.signal.aborted && !isHopeless()) {
      const item = waiting.shift();
      if (item === undefined) return;
      asked++;
      try {
        await remove(item);
        deleted.push(item);
      } catch (error) {
        failed.push(item);
        reason = error;
        deps.metrics.objectDeletionsFailed.inc({ code: error instanceof PunctualError ? error.code : "unknown" });
      }
    }
  }

  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, work));
  if (failed.length > 0) {
    deps.log.error(
      { failed: failed.length, deleted: deleted.length, err: reason, reason: messageOf(reason) },
      "the object store did not delete what it was asked to; it is tried again",
    );
  }
  return { deleted, failed };
}

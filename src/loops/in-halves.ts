import { isRefusedItem } from "../authority/refused-item.ts";
import { isOutcomeUnknown } from "../kernel/errors.ts";

/**
 * Does a batch in one piece, or, where that fails in a way that one item may be the cause of, in halves, down to single
 * items: one bad item never stops the rest. `giveUp` hears of the item that fails alone; any other error is thrown.
 * The work must be safe to repeat: an unknown outcome may have been a success.
 */
export async function inHalves<Item>(
  items: readonly Item[],
  work: (items: readonly Item[]) => Promise<void>,
  giveUp: (item: Item, error: unknown) => void,
): Promise<void> {
  if (items.length === 0) return;
  try {
    await work(items);
  } catch (error) {
    if (!mayBeOneItem(error)) throw error;
    if (items.length === 1) {
      giveUp(items[0]!, error);
      return;
    }
    const middle = items.length >> 1;
    await inHalves(items.slice(0, middle), work, giveUp);
    await inHalves(items.slice(middle), work, giveUp);
  }
}

/** Its data, a lock that a stranger holds, or more work than one deadline allows. */
function mayBeOneItem(error: unknown): boolean {
  return isRefusedItem(error) || isOutcomeUnknown(error);
}

import { PunctualError } from "../kernel/errors.ts";

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

export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof PunctualError && error.code === "outcome-unknown";
}

/** Its data (SQLSTATE 22, 23), a lock that a stranger holds (55P03), or more work than one deadline allows. */
function mayBeOneItem(error: unknown): boolean {
  if (isOutcomeUnknown(error)) return true;
  const state = (error as { code?: unknown } | null)?.code;
  return typeof state === "string" && /^(22...|23...|55P03)$/.test(state);
}

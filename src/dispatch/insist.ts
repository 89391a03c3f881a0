import type { Authority } from "../authority/authority.ts";
import { isPoisonedItem } from "../authority/refused-item.ts";
import { backoffMs } from "../kernel/backoff.ts";
import { messageOf, PunctualError } from "../kernel/errors.ts";

/** How long it is worth insisting: until the process ends, or until an instant on its monotonic clock (ms). */
export type Patience = { ending: AbortSignal; untilMs: number };

/**
 * Says a verb again, with growing pauses, until there is an answer: every verb knows a repeat by its natural key. Throws
 * what cannot get better, or the last fault when the patience is over.
 */
export async function insist<Answer>(
  authority: Pick<Authority, "clock" | "log" | "chance">,
  patience: Patience,
  say: (tries: number) => Promise<Answer>,
  mayRepeat: (error: unknown, tries: number) => boolean = mayBeAnswered,
): Promise<Answer> {
  const { clock, log } = authority;
  const { ending, untilMs } = patience;
  for (let tries = 1; ; tries++) {
    try {
      return await say(tries);
    } catch (error) {
      if (!mayRepeat(error, tries) || ending.aborted || clock.monotonic() >= untilMs) throw error;
      log.warn({ tries, reason: messageOf(error) }, "a verb got no answer and is said again");
      await clock.sleep(backoffMs(tries, { baseMs: 100, capMs: 5_000, floorMs: 50 }, authority.chance()), ending);
    }
  }
}

/** A lost reply, a database that is away, a row that somebody holds: not bad data, and not a refusal. */
export function mayBeAnswered(error: unknown): boolean {
  if (isPoisonedItem(error)) return false;
  return !(error instanceof PunctualError) || error.retryable || error.code === "database-unreachable";
}

import type { Clock } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Log } from "../kernel/log.ts";
import type { Service } from "../kernel/service.ts";
import type { Claimer } from "./claimer.ts";
import type { Slots } from "./slots.ts";
import type { Hint, Source } from "./source.ts";

const NAP_MS = 25;
const LONGEST_NAP_MS = 1_000;

export type Fetcher = Service & { wake(): void };

/**
 * Keeps the slots of one class full: takes hints for the free slots, has them claimed, acknowledges them once the
 * claim has committed. A worker never holds runs that it has not claimed.
 */
export function createFetcher(options: {
  class: string;
  source: Source;
  claimer: Claimer;
  slots: Slots;
  clock: Clock;
  log: Log;
}): Fetcher {
  const { source, claimer, slots, clock, log } = options;
  const class_ = options.class;
  const stopping = new AbortController();
  let nap: AbortController | undefined;
  let woken = false;
  let running: Promise<void> | undefined;
  const claiming = new Set<Promise<void>>();

  function wake(): void {
    woken = true;
    nap?.abort("woken");
  }

  async function run(): Promise<void> {
    let napMs = NAP_MS;
    while (!stopping.signal.aborted) {
      woken = false;
      let againAt: number | undefined;
      const free = slots.free(class_);
      if (free > 0) {
        try {
          const taken = await source.take(class_, free);
          againAt = taken.againAt;
          for (const hint of taken.hints) claimOne(hint);
          if (taken.hints.length > 0) {
            napMs = NAP_MS;
            // Lets the claims of this tick start before more is fetched.
            await Promise.resolve();
            continue;
          }
        } catch (error) {
          log.warn({ class: class_, reason: messageOf(error) }, "hints could not be fetched");
        }
      }
      if (woken || stopping.signal.aborted) continue;
      nap = new AbortController();
      const untilAgainMs = againAt === undefined ? napMs : Math.max(0, againAt - clock.now());
      // With no slot free there is nothing to look for until one is.
      await clock.sleep(free > 0 ? Math.min(napMs, untilAgainMs) : LONGEST_NAP_MS, nap.signal);
      nap = undefined;
      napMs = woken ? NAP_MS : Math.min(LONGEST_NAP_MS, napMs * 2);
    }
  }

  function claimOne(hint: Hint): void {
    // A hint may name more runs than slots are free: the claim puts the others back.
    const kept = Math.max(0, Math.min(hint.runCount, slots.free(class_)));
    slots.take(class_, kept);
    const claim = claimer
      .claim(hint, kept)
      .then(
        () => source.acknowledge([hint]),
        (error) => {
          log.warn({ class: class_, row: String(hint.rowId), reason: messageOf(error) }, "a hint could not be claimed");
          source.abandon([hint]);
        },
      )
      .finally(() => {
        claiming.delete(claim);
        // What was granted has taken its own slots by now; these were only kept for it.
        slots.giveBack(class_, kept);
      });
    claiming.add(claim);
  }

  return {
    name: `fetcher ${class_}`,
    async start() {
      slots.onFree(class_, wake);
      running ??= run();
    },
    wake,
    async stop() {
      stopping.abort();
      nap?.abort("woken");
      await running;
      await Promise.all(claiming);
    },
  };
}

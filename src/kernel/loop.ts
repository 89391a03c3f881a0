import type { Clock, Instant } from "./clock.ts";
import { messageOf, PunctualError } from "./errors.ts";
import type { Log } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import type { Service } from "./service.ts";

/** What a pass did: how much, whether more is waiting right now, and when (process clock) it knows to look next. */
export type PassResult = { did: number; more: boolean; nextAt?: Instant | undefined };

/** A background loop's page: a name, a cadence, and a pass that is safe to run twice at once. */
export type Pass = {
  readonly name: string;
  /** Nap after a pass that found work. */
  readonly everyMs: number;
  /** Longest nap when pass after pass finds nothing (doubles from everyMs). */
  readonly idleMs: number;
  pass(signal: AbortSignal): Promise<PassResult>;
};

export type LoopService = Service & {
  /** Ends the nap now: somebody knows there is work. Best effort; the loop finds its work without it. */
  wake(): void;
};

/** A pass that fails again as it did before says so once in this time. */
const SAY_AGAIN_MS = 300_000;

/** Runs a pass over and over: at once while there is more, else naps, longer and longer while nothing is found. */
export function createLoop(page: Pass, deps: { clock: Clock; log: Log; metrics: Metrics }): LoopService {
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  let nap: AbortController | undefined;
  let woken = false;
  let said: { reason: string; atMs: number } | undefined;

  function complain(error: unknown): void {
    const reason = messageOf(error);
    const nowMs = deps.clock.monotonic();
    if (said?.reason === reason && nowMs - said.atMs < SAY_AGAIN_MS) return;
    said = { reason, atMs: nowMs };
    // What an operator has to mend is not in our code: a stack says nothing of it.
    const isOperators = error instanceof PunctualError && error.actor === "operator";
    const fields = isOperators ? { loop: page.name, reason } : { loop: page.name, err: error, reason };
    deps.log.error(fields, "a pass failed, the loop goes on");
  }

  async function run(): Promise<void> {
    let napMs = page.everyMs;
    while (!stopping.signal.aborted) {
      woken = false;
      const startedAt = deps.clock.monotonic();
      let result: PassResult = { did: 0, more: false };
      try {
        result = await page.pass(stopping.signal);
        deps.metrics.passes.inc({ loop: page.name, outcome: result.did > 0 ? "worked" : "idle" });
        said = undefined;
        napMs = result.did > 0 ? page.everyMs : Math.min(page.idleMs, napMs * 2);
      } catch (error) {
        deps.metrics.passes.inc({ loop: page.name, outcome: "failed" });
        complain(error);
        napMs = Math.min(page.idleMs, Math.max(napMs, 250) * 2);
      }
      deps.metrics.passSeconds.observe({ loop: page.name }, (deps.clock.monotonic() - startedAt) / 1000);
      if (result.more || woken || stopping.signal.aborted) continue;
      const untilNextMs = result.nextAt === undefined ? napMs : Math.max(0, result.nextAt - deps.clock.now());
      nap = new AbortController();
      await deps.clock.sleep(Math.min(napMs, untilNextMs), nap.signal);
      nap = undefined;
    }
  }

  return {
    name: page.name,
    async start() {
      running ??= run();
    },
    wake() {
      woken = true;
      nap?.abort("woken");
    },
    async stop() {
      stopping.abort();
      nap?.abort("woken");
      await running;
    },
  };
}

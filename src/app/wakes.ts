import type { Signals } from "../authority/authority.ts";
import type { Waker } from "../hints/wake.ts";
import type { Clock } from "../kernel/clock.ts";

/**
 * News between roles: at once inside this process, best effort over Redis to the others. Nothing depends on it; every
 * loop finds its work without.
 */
export type Wakes = {
  readonly signals: Signals;
  on(topic: Topic, callback: () => void): void;
  wake(topic: Topic): void;
};

export type Topic = "scanner" | "relay" | "direct" | "effects";

/** Busy processes have news all the time; others need to hear it only so often. */
const REMOTE_EVERY_MS = 20;
/** A relay that was woken looks again by itself soon after: slots that free up in between are not missed. */
const ROOM_EVERY_MS = 50;

export function createWakes(clock: Clock, waker: Waker | undefined): Wakes {
  const local = new Map<Topic, (() => void)[]>();
  const toldAt = new Map<Topic, number>();
  let roomToldAt = Number.NEGATIVE_INFINITY;

  function wake(topic: Topic): void {
    for (const callback of local.get(topic) ?? []) callback();
    if (waker === undefined || topic === "direct") return;
    const nowMs = clock.monotonic();
    if (nowMs - (toldAt.get(topic) ?? Number.NEGATIVE_INFINITY) < REMOTE_EVERY_MS) return;
    toldAt.set(topic, nowMs);
    waker.wake(topic);
  }

  return {
    signals: {
      scheduleMoved: () => wake("scanner"),
      outboxGrew() {
        wake("relay");
        wake("direct");
      },
      slotsFreed() {
        const nowMs = clock.monotonic();
        if (nowMs - roomToldAt < ROOM_EVERY_MS) return;
        roomToldAt = nowMs;
        wake("relay");
      },
      effectsDue: () => wake("effects"),
    },
    on(topic, callback) {
      local.set(topic, [...(local.get(topic) ?? []), callback]);
      waker?.on(topic, callback);
    },
    wake,
  };
}

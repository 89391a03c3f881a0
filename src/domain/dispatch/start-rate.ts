import type { Instant } from "../../kernel/clock.ts";

/** Starts of a tenant in a class, counted in windows of a second; each begins with the first start after the one before. */
export type StartWindow = { windowAt: Instant | null; starts: number };

const WINDOW_MS = 1_000;

/** The window that counts now: the one that goes on, or a fresh one. */
export function windowNow(seen: StartWindow, nowAt: Instant): { windowAt: Instant; starts: number } {
  const { windowAt, starts } = seen;
  // One from the future is of a clock that was set back: nobody is to wait for it.
  const goesOn = windowAt !== null && windowAt <= nowAt && nowAt < windowAt + WINDOW_MS;
  return goesOn ? { windowAt, starts } : { windowAt: nowAt, starts: 0 };
}

/** How many more may start now, and when more may if none. */
export function roomInWindow(seen: StartWindow, rate: number, nowAt: Instant): { room: number; againAt: Instant } {
  const { windowAt, starts } = windowNow(seen, nowAt);
  return { room: Math.max(0, rate - starts), againAt: windowAt + WINDOW_MS };
}

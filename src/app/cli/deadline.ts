import type { Clock } from "../../kernel/clock.ts";
import { UsageError } from "./usage.ts";

/** How long a command watches. */
export type Deadline = { passed(): boolean; nap(ms: number): Promise<void> };

export function deadlineIn(ms: number, clock: Clock): Deadline {
  const startedMs = clock.monotonic();
  const leftMs = () => ms - (clock.monotonic() - startedMs);
  return { passed: () => leftMs() <= 0, nap: (napMs) => clock.sleep(Math.min(napMs, leftMs())) };
}

export function readWhole(option: string, text: string, most: number): number {
  const value = Number(text);
  if (/^\d{1,7}$/.test(text) && value >= 1 && value <= most) return value;
  throw new UsageError(`${option}: found "${text}"; allowed: a whole number from 1 to ${most}`);
}

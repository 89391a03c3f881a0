import type { Instant } from "../../kernel/clock.ts";
import type { Fence } from "../fence.ts";

/** How long after its end an attempt may still hand in what it said before. */
const LATE_LOG_MS = 10 * 60_000;
/** Parts kept of one attempt's log at most, however small they are. */
const MOST_PARTS = 512;

/** Whose log it is: an attempt knows its fence, and nobody else does. A superseded one may say how it ended up so. */
export function mayAppend(
  attempt: { fence: Fence; endedAt: Instant | null } | undefined,
  fence: Fence,
  nowAt: Instant,
): boolean {
  if (attempt === undefined || attempt.fence !== fence) return false;
  return attempt.endedAt === null || attempt.endedAt + LATE_LOG_MS > nowAt;
}

export type LogPart = { n: number; atByte: number; size: number };

/** Where the next part begins; `skipped` bytes were lost before it. */
export function nextPart(last: LogPart | undefined, size: number, skipped: number): LogPart {
  const end = last === undefined ? 0 : last.atByte + last.size;
  return { n: (last?.n ?? 0) + 1, atByte: end + skipped, size };
}

/** The oldest parts, without which the rest is within the limit. `parts` by n; the newest always stays. */
export function partsToDrop(parts: readonly LogPart[], limitBytes: number): LogPart[] {
  let kept = 0;
  let from = parts.length;
  while (from > 0 && parts.length - from < MOST_PARTS) {
    kept += parts[from - 1]!.size;
    if (kept > limitBytes && from < parts.length) break;
    from--;
  }
  return parts.slice(0, from);
}

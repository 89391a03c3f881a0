/**
 * Exponential back-off with full jitter: uniform in [0, min(cap, base · 2^(attempt-1))], but at least `floorMs`.
 * Source: "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
 * `attempt` counts from 1; `chance` is a number in [0, 1).
 */
export function backoffMs(
  attempt: number,
  policy: { baseMs: number; capMs: number; floorMs?: number },
  chance: number,
): number {
  const ceiling = Math.min(policy.capMs, policy.baseMs * 2 ** Math.min(attempt - 1, 40));
  return Math.max(policy.floorMs ?? 0, Math.floor(chance * ceiling));
}

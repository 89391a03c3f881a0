import { UsageError } from "../usage.ts";

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const;

/** How long a key that is replaced goes on, of `--overlap`. */
export function readSeconds(text: string): number {
  const found = /^(\d{1,7})([smhd])$/.exec(text);
  const seconds = found === null ? Number.NaN : Number(found[1]) * SECONDS[found[2] as keyof typeof SECONDS];
  if (seconds <= 30 * SECONDS.d) return seconds;
  throw new UsageError(`--overlap: found "${text}"; allowed: such as 0s, 30m, 24h or 7d, at most 30d`);
}

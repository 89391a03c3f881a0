import type { Clock } from "./clock.ts";

export type FloodTerms = {
  /** Pieces that are counted together. */
  most: number;
  /** What they bring on average if they are no flood (bytes). */
  least: number;
  /** They come within this if they are one (ms). */
  withinMs: number;
};

/** A piece costs some microseconds of everybody's event loop, however little is in it. Rows of a table have more in them. */
export const CRUMBS: FloodTerms = { most: 5_000, least: 8, withinMs: 5_000 };

/**
 * Whether somebody sends in a way that keeps us busy and reaches no limit of bytes in time. Answers for each piece whether
 * the last `most` of them came fast and brought next to nothing; what drips is none.
 */
export function createFlood(clock: Pick<Clock, "monotonic">, terms: FloodTerms): (bytes: number) => boolean {
  const { most, least, withinMs } = terms;
  let since = clock.monotonic();
  let pieces = 0;
  let bytes = 0;
  return (length) => {
    pieces++;
    bytes += length;
    if (pieces < most) return false;
    const now = clock.monotonic();
    const isFlood = now - since < withinMs && bytes < most * least;
    since = now;
    pieces = 0;
    bytes = 0;
    return isFlood;
  };
}

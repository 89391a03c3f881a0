import type { Instant } from "../../kernel/clock.ts";

/** Answers the first instant of a rule strictly later than its argument, or null when there is none. */
export type NextAfter = (at: Instant) => Instant | null;

/**
 * The newest instant in [knownAt, beforeAt), given that `knownAt` is one. Looks back from the end in doubling steps,
 * then halves what is left: some dozens of questions, whatever the rule and however long the outage.
 */
export function newestBefore(knownAt: Instant, beforeAt: Instant, next: NextAfter): Instant {
  const within = (at: Instant) => {
    const found = next(at);
    return found !== null && found < beforeAt ? found : undefined;
  };
  let newest = knownAt;
  for (let backMs = 1000; beforeAt - backMs > knownAt; backMs *= 2) {
    const found = within(beforeAt - backMs);
    if (found !== undefined) {
      newest = found;
      break;
    }
  }
  // Nothing lies strictly between `emptyAt` and the end.
  for (let emptyAt = beforeAt - 1; newest < emptyAt; ) {
    const middle = newest + Math.floor((emptyAt - newest) / 2);
    const found = within(middle);
    if (found === undefined) emptyAt = middle;
    else newest = found;
  }
  return newest;
}

/** An instant in [knownAt, beforeAt) with at most `most` instants from it on, and `knownAt` if that has so few. */
export function startOfNewest(knownAt: Instant, beforeAt: Instant, most: number, next: NextAfter): Instant {
  const isFew = (fromAt: Instant) => {
    let count = 0;
    for (let at: Instant | null = fromAt; at !== null && at < beforeAt; at = next(at)) if (++count > most) return false;
    return true;
  };
  let many = knownAt;
  let none = beforeAt - 1;
  let few: Instant | undefined;
  for (let backMs = 1000; beforeAt - backMs > knownAt; backMs *= 2) {
    const found = next(beforeAt - backMs);
    if (found === null || found >= beforeAt) none = beforeAt - backMs;
    else if (isFew(found)) few = found;
    else {
      many = found;
      break;
    }
  }
  if (many === knownAt && isFew(many)) return many;
  // A crowd between one step back and the next: halve the way, until it is parted.
  while (few === undefined) {
    const middle = many + Math.floor((none - many) / 2);
    const found = next(middle);
    if (found === null || found >= beforeAt) none = middle;
    else if (isFew(found)) few = found;
    else many = found;
  }
  return few;
}

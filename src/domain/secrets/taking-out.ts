/**
 * Takes given texts out of others: at each place the longest that stands there. A regular expression of them would do the
 * same for a few; of a key ring in all its forms it is too large for V8, which throws it back as a message, secrets and all.
 */
export function takingOut(texts: Iterable<string>, shortest: number): (from: string, mark: string) => string {
  const sorted = [...new Set(texts)].filter((text) => text.length >= shortest).sort();
  const beginnings = new Set(sorted.map((text) => text.slice(0, shortest)));
  const longest = sorted.reduce((most, text) => Math.max(most, text.length), 0);
  const within = beginningsAmong(sorted);

  /** How long the longest is that stands in `from` at this place; 0 for none. */
  function lengthAt(from: string, at: number): number {
    if (!beginnings.has(from.slice(at, at + shortest))) return 0;
    const rest = from.slice(at, at + longest);
    let [low, high] = [0, sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sorted[middle]! <= rest) low = middle + 1;
      else high = middle;
    }
    // Whatever the rest begins with sorts before it, and between the two stands only what begins with that as well.
    for (let i = low - 1; i >= 0; i = within[i]!) if (rest.startsWith(sorted[i]!)) return sorted[i]!.length;
    return 0;
  }

  return (from, mark) => {
    let left = "";
    let kept = 0;
    for (let at = 0; at + shortest <= from.length; ) {
      const length = lengthAt(from, at);
      if (length > 0) {
        left += from.slice(kept, at) + mark;
        kept = at + length;
      }
      at += Math.max(1, length);
    }
    return left + from.slice(kept);
  };
}

/** Of each the place of the longest other that it begins with; -1: there is none. */
function beginningsAmong(sorted: readonly string[]): number[] {
  const open: number[] = [];
  return sorted.map((text, i) => {
    while (open.length > 0 && !text.startsWith(sorted[open.at(-1)!]!)) open.pop();
    const found = open.at(-1) ?? -1;
    open.push(i);
    return found;
  });
}

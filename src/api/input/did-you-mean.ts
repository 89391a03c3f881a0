/** The candidate that `word` was probably meant to be, or undefined when none is near. Case does not count. */
export function didYouMean(word: string, candidates: readonly string[]): string | undefined {
  if (word.length > 100) return undefined;
  const lower = word.toLowerCase();
  let best: string | undefined;
  let bestDistance = Math.max(1, Math.floor(word.length / 3)) + 1;
  for (const candidate of candidates) {
    const distance = editDistance(lower, candidate.toLowerCase());
    if (distance < bestDistance) {
      bestDistance = distance;
      best = candidate;
    }
  }
  return best;
}

/** Edits from one word to the other, two neighbours swapped being one edit (optimal string alignment), three rows at a time. */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const current = [i];
    for (let j = 1; j <= b.length; j++) {
      const substitution = previous[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const swap = swapped ? older[j - 2]! + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(substitution, previous[j]! + 1, current[j - 1]! + 1, swap));
    }
    older = previous;
    previous = current;
  }
  return previous[b.length]!;
}

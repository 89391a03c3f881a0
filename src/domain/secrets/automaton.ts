/** Finds many texts at once, in a time that is linear in what is searched. */
export type BackwardAutomaton = {
  /** Every place where one of the texts begins and the length of the longest that does, in pairs, the last place first. */
  find(from: string): number[];
};

/**
 * The automaton of Aho and Corasick, of the texts read backward: run from the end to the beginning it knows at each place
 * the longest that begins there, which one that runs forward knows only when it has seen how everything longer ends.
 * States are numbers and stand level by level, so that the children of one are neighbours: some bytes a character, where
 * one object a state would be hundreds, and the forms of a large secret are a million characters.
 */
export function backwardAutomaton(texts: readonly string[]): BackwardAutomaton {
  const sorted = texts.map(backward).sort();
  const states = countStates(sorted);
  /** What leads to a state, where its children begin, where it goes on without one, and what it has found. */
  const unit = new Uint16Array(states);
  const first = new Int32Array(states + 1);
  const other = new Int32Array(states);
  const longest = new Int32Array(states);

  function childOf(state: number, wanted: number): number {
    let [low, high] = [first[state]!, first[state + 1]!];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (unit[middle]! < wanted) low = middle + 1;
      else high = middle;
    }
    return low < first[state + 1]! && unit[low] === wanted ? low : 0;
  }

  function after(state: number, wanted: number): number {
    for (let at = state; ; at = other[at]!) {
      const child = childOf(at, wanted);
      if (child !== 0 || at === 0) return child;
    }
  }

  /** Which of the sorted texts begin with what leads to a state. */
  const from = new Int32Array(states);
  const to = new Int32Array(states);
  to[0] = sorted.length;
  let next = 1;
  for (let state = 0, depth = 0, level = 1; state < states; state++) {
    if (state === level) [depth, level] = [depth + 1, next];
    first[state] = next;
    longest[state] = longest[other[state]!]!;
    let i = from[state]!;
    // Of all that begin with it the one that ends here is sorted first.
    if (sorted[i]?.length === depth && depth > 0) {
      longest[state] = depth;
      i++;
    }
    while (i < to[state]!) {
      const wanted = sorted[i]!.charCodeAt(depth);
      unit[next] = wanted;
      from[next] = i;
      while (i < to[state]! && sorted[i]!.charCodeAt(depth) === wanted) i++;
      to[next] = i;
      other[next] = state === 0 ? 0 : after(other[state]!, wanted);
      next++;
    }
    first[state + 1] = next;
  }

  return {
    find(text) {
      const found: number[] = [];
      let state = 0;
      for (let at = text.length - 1; at >= 0; at--) {
        state = after(state, text.charCodeAt(at));
        if (longest[state]! > 0) found.push(at, longest[state]!);
      }
      return found;
    },
  };
}

/** By its units, not its characters: what is cut in the middle of one is found as well. */
function backward(text: string): string {
  return Buffer.from(text, "utf16le").reverse().swap16().toString("utf16le");
}

/** One for each beginning that the sorted texts have, and one for none. */
function countStates(sorted: readonly string[]): number {
  let states = 1;
  let before = "";
  for (const text of sorted) {
    let shared = 0;
    while (shared < before.length && before.charCodeAt(shared) === text.charCodeAt(shared)) shared++;
    states += text.length - shared;
    before = text;
  }
  return states;
}

import { backwardAutomaton } from "./automaton.ts";

export type TakingOut = {
  /** Length of the longest of the texts. */
  readonly longest: number;
  /** `left`: without those that begin before `until`; `rest`: what follows, as it was. All of it, if nothing is said. */
  takeOut(from: string, mark: string, until?: number): { left: string; rest: string };
};

/**
 * Takes given texts out of others: at each place the longest that stands there. A regular expression of them would do the
 * same for a few; of a key ring in all its forms it is too large for V8, which throws it back as a message, secrets and all.
 * Each character costs about the same, whatever the texts are: who sends them also says what they are taken out of, and
 * everybody else waits meanwhile.
 */
export function takingOut(texts: Iterable<string>, shortest: number): TakingOut {
  const wanted = [...new Set(texts)].filter((text) => text.length >= shortest);
  const longest = wanted.reduce((most, text) => Math.max(most, text.length), 0);
  const automaton = backwardAutomaton(wanted);

  return {
    longest,
    takeOut(from, mark, until = from.length) {
      if (until <= 0) return { left: "", rest: from };
      const found = automaton.find(from);
      let left = "";
      let kept = 0;
      // Found from the end on: the first place is the last one.
      for (let i = found.length - 2; i >= 0; i -= 2) {
        const [at, length] = [found[i]!, found[i + 1]!];
        if (at >= until) break;
        if (at < kept) continue;
        left += from.slice(kept, at) + mark;
        kept = at + length;
      }
      const end = Math.max(kept, until);
      return { left: left + from.slice(kept, end), rest: from.slice(end) };
    },
  };
}

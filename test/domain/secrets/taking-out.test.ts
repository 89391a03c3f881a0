import fc from "fast-check";
import { expect, it } from "vitest";
import { takingOut } from "../../../src/domain/secrets/taking-out.ts";

const MARK = "*";

/** What it is to do, word by word: at each place the longest that stands there, and on behind it. */
function plainly(texts: readonly string[], shortest: number, from: string, until = from.length) {
  let left = "";
  let at = 0;
  while (at < until) {
    const here = texts.filter((text) => text.length >= shortest && from.startsWith(text, at));
    const length = Math.max(0, ...here.map((text) => text.length));
    left += length > 0 ? MARK : from[at];
    at += Math.max(1, length);
  }
  return { left, rest: from.slice(at) };
}

/** Of few letters, so that texts overlap, begin alike and stand in each other; half a character is one of them. */
const word = (most: number) =>
  fc.array(fc.constantFrom("a", "b", "\uD83D"), { maxLength: most }).map((letters) => letters.join(""));

it("takes out what one would by looking at each place for each text", () => {
  fc.assert(
    fc.property(
      fc.array(word(7), { maxLength: 8 }),
      word(60),
      fc.integer({ min: 1, max: 4 }),
      fc.option(fc.integer({ min: -3, max: 63 }), { nil: undefined }),
      (texts, from, shortest, until) => {
        const bounded = until === undefined ? undefined : Math.min(until, from.length);
        expect(takingOut(texts, shortest).takeOut(from, MARK, bounded)).toEqual(
          plainly(texts, shortest, from, bounded),
        );
      },
    ),
    { numRuns: 1_500 },
  );
});

it("is not held up by who sends a secret and says what is nearly it, again and again", () => {
  // Looked at place by place, this is some 10^12 comparisons of letters.
  const nearly = "a".repeat(60_000);
  const { takeOut } = takingOut([`${nearly}b`, `b${nearly}c`, "aaab"], 4);
  const said = `b${"a".repeat(20_000_000)}`;
  expect(takeOut(said, MARK).left).toBe(said);
  expect(takeOut(`${said}b`, MARK).left).toBe(`${said.slice(0, -60_000)}${MARK}`);
});

/** Longest error text kept (characters); the database's CHECK has the same number. */
export const STORABLE_LIMIT = 4000;

const REPLACEMENT = "\uFFFD";
const CUT = " …";

/**
 * Text that PostgreSQL accepts, whatever a stranger threw: NUL and lone surrogates become U+FFFD, and what is longer
 * than `limit` UTF-16 units is cut (visibly, and never through a character). Without it one bad error message would
 * poison the batch in which it is written.
 */
export function storableText(text: string, limit: number = STORABLE_LIMIT): string {
  // A cut first keeps the work bounded for texts of any length; toWellFormed mends a pair the cut went through.
  const kept = text.length > limit ? text.slice(0, limit - CUT.length).replace(/[\uD800-\uDBFF]$/, "") + CUT : text;
  return kept.toWellFormed().replaceAll("\0", REPLACEMENT);
}

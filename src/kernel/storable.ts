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

/** JSON text of a value, whose BigInts are written in digits; undefined for what is no JSON (a function, a cycle). */
export function jsonOf(value: unknown): string | undefined {
  try {
    return JSON.stringify(value, (_key, one: unknown) => (typeof one === "bigint" ? String(one) : one));
  } catch {
    return undefined;
  }
}

/**
 * JSON text that a jsonb column accepts, or undefined for what is no JSON at all (a function, a cycle) or is longer than
 * `limit` UTF-16 units. A BigInt is written in digits, as a text: no reader of JSON could be trusted with it as a number.
 */
export function storableJson(value: unknown, limit: number = STORABLE_LIMIT): string | undefined {
  try {
    const text: string | undefined = JSON.stringify(value, (_key, one: unknown) => {
      if (typeof one === "bigint") return String(one);
      if (typeof one === "string") return storableText(one);
      if (one === null || typeof one !== "object" || Array.isArray(one)) return one;
      return Object.fromEntries(Object.entries(one).map(([key, inner]) => [storableText(key), inner]));
    });
    return text === undefined || text.length > limit ? undefined : text;
  } catch {
    return undefined;
  }
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const QUOTED = '"(?:[\\t \\x21\\x23-\\x5b\\x5d-\\x7e]|\\\\[\\t \\x21-\\x7e])*"';
// RFC 9110, 8.3.1. It becomes a header of whoever serves the object: what is no token there must not get in.
const MEDIA_TYPE = new RegExp(`^${TOKEN}/${TOKEN}(?:[ \\t]*;[ \\t]*${TOKEN}=(?:${TOKEN}|${QUOTED}))*$`);
const LONGEST = 200;

export const ALLOWED_MEDIA_TYPE = `a media type such as text/html; charset=utf-8, at most ${LONGEST} characters`;

/** A job's own words, so its type is not to be relied on. */
export function isMediaType(found: unknown): found is string {
  return typeof found === "string" && found.length <= LONGEST && MEDIA_TYPE.test(found);
}

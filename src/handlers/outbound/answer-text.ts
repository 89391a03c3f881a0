import type { KnownSecrets } from "../../domain/secrets/known.ts";

/** Of an answer so much is shown to people. */
const SHOWN = 500;
/** So many bytes of it are read: who sends a secret back may do so across the end of what is shown. */
export const READ_OF_ANSWER = 65_536;
/** Of a character that the reading has cut. */
const MOST_OF_ONE = 3;

/** The beginning of an answer for people. Secrets are taken out before it is cut: a piece of one would not be known. */
export function shownOf(read: string, secrets: KnownSecrets): string {
  const isCut = Buffer.byteLength(read) >= READ_OF_ANSWER - MOST_OF_ONE;
  const text = (isCut ? secrets.scrubSettled(read).settled : secrets.scrub(read)).trim();
  return text.length > SHOWN ? `${text.slice(0, SHOWN).replace(/[\uD800-\uDBFF]$/, "")} …` : text;
}

import { createHash } from "node:crypto";
import { NoAnswer } from "./errors.ts";
import { noAnswerOf } from "./http.ts";
import type { ResultLink } from "./types.ts";

/**
 * The bytes behind a link, checked: the last chunk is given out only when size and checksum are what the API promised.
 * Throws NoAnswer when they are not, or when the link leads nowhere. No key is sent: the link is the permission.
 */
export async function* download(link: ResultLink): AsyncGenerator<Uint8Array> {
  const url = new URL(link.url);
  const hash = createHash("sha256");
  let size = 0;
  let held: Uint8Array | undefined;
  try {
    const response = await fetch(url);
    if (!response.ok || response.body === null)
      throw new NoAnswer(url.origin, `the link answers HTTP ${response.status}`, false);
    for await (const chunk of response.body) {
      hash.update(chunk);
      size += chunk.byteLength;
      if (held !== undefined) yield held;
      held = chunk;
    }
  } catch (error) {
    throw error instanceof NoAnswer ? error : noAnswerOf(url, error);
  }
  if (size !== link.size || hash.digest("hex") !== link.sha256) {
    throw new NoAnswer(url.origin, `the result arrived damaged (${size} of ${link.size} bytes): try again`, false);
  }
  if (held !== undefined) yield held;
}

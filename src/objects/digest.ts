import { createHash } from "node:crypto";
import type { Bytes } from "./port.ts";

/**
 * The same bytes, and what they were: `digest` answers sha256 (64 hex digits) and size (bytes) once they are read, and
 * reads what nobody has read yet. Nothing is kept, so a stream of any length is fine.
 */
export function digesting(source: Bytes): { bytes: Bytes; digest(): Promise<{ sha256: string; size: number }> } {
  if (source instanceof Uint8Array) {
    const digest = async () => ({ sha256: createHash("sha256").update(source).digest("hex"), size: source.byteLength });
    return { bytes: source, digest };
  }
  const hash = createHash("sha256");
  let size = 0;
  const bytes = (async function* () {
    for await (const chunk of source) {
      hash.update(chunk);
      size += chunk.byteLength;
      yield chunk;
    }
  })();
  return {
    bytes,
    async digest() {
      for await (const _ of bytes);
      return { sha256: hash.digest("hex"), size };
    },
  };
}

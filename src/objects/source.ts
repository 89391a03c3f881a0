import type { Bytes } from "./port.ts";

/** The uploader's own failure, told apart from the store's: a reset connection is not a broken disk. */
export class SourceFailed extends Error {}

/** The chunks of an upload. What the source throws, and an abort, come as SourceFailed with the reason as its cause. */
export async function* chunksOf(bytes: Bytes, signal?: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    signal?.throwIfAborted();
    if (bytes instanceof Uint8Array) yield bytes;
    else {
      for await (const chunk of bytes) {
        signal?.throwIfAborted();
        yield chunk;
      }
      signal?.throwIfAborted();
    }
  } catch (error) {
    throw new SourceFailed("the source failed", { cause: error });
  }
}

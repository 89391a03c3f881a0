import { type JobFailure, permanentFailure } from "../handlers/outcome.ts";
import type { Bytes } from "../objects/port.ts";

/**
 * The bytes of an output, as far as they are bytes and not too many: else the source fails, and with it the upload.
 * `failure`: what it failed with, whatever the store has made of it. Chunks are taken one at a time, when the store asks.
 */
export function boundedOutput(
  source: unknown,
  limitBytes: number,
): { bytes: Bytes; failure(): JobFailure | undefined } {
  let failure: JobFailure | undefined;
  const fail = (made: JobFailure) => {
    failure = made;
    return made;
  };
  async function* chunks(): AsyncGenerator<Uint8Array> {
    let size = 0;
    for await (const chunk of source instanceof Uint8Array ? [source] : chunksOf(source)) {
      if (!(chunk instanceof Uint8Array)) throw fail(outputInvalid("a chunk of an output", chunk));
      size += chunk.byteLength;
      if (size > limitBytes) throw fail(outputTooLarge(limitBytes));
      yield chunk;
    }
  }
  function chunksOf(found: unknown): AsyncIterable<unknown> {
    if (typeof found === "object" && found !== null && Symbol.asyncIterator in found) {
      return found as AsyncIterable<unknown>;
    }
    throw fail(outputInvalid("the bytes of an output", found));
  }
  // Whole bytes stay what they are: stores send those in one request, and can repeat it.
  const isWhole = source instanceof Uint8Array && source.byteLength <= limitBytes;
  return { bytes: isWhole ? source : chunks(), failure: () => failure };
}

function outputTooLarge(limitBytes: number): JobFailure {
  return permanentFailure(
    "output-too-large",
    `an output may have at most ${limitBytes.toLocaleString("en")} bytes here`,
  );
}

function outputInvalid(what: string, found: unknown): JobFailure {
  const shown = found === null ? "null" : typeof found;
  return permanentFailure(
    "output-invalid",
    `${what}: found ${shown}; allowed: a Uint8Array, or an async iterable of them`,
  );
}

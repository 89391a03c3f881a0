import { pipeline, type Readable, type Transform } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib";

/** The body of an answer, unpacked, of which nobody reads more than wanted. */

/** Whoever unpacks must remember so much of what was unpacked before: 8 MiB, as servers may expect of anybody. */
const ZSTD_WINDOW_LOG = 23;

const UNPACKERS: Readonly<Record<string, () => Transform>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  // 16 MiB; a larger window must be asked for.
  br: () => createBrotliDecompress({ params: { [constants.BROTLI_DECODER_PARAM_LARGE_WINDOW]: 0 } }),
  zstd: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG } }),
};

/** More than is read ahead and than a block has; what takes more of it and gives nothing is there to keep us busy. */
const MOST_FOR_NOTHING = 2 ** 19;

/** It is packed in a way that is not unpacked here. */
export class Unreadable extends Error {}

/**
 * Targets are asked for plain bodies; one that packs it all the same is unpacked, a piece at a time. Packed twice is not
 * packed: the inner layer could be as long as it likes and never become a byte that counts.
 * @param wanted how many bytes will be read at most
 * @throws Unreadable, or what is wrong with the connection or the packing.
 */
export async function* unpacked(
  body: Readable,
  contentEncoding: string | undefined,
  wanted: number,
): AsyncGenerator<Uint8Array> {
  const unpacker = unpackerOf(contentEncoding);
  if (unpacker === undefined) return yield* body as AsyncIterable<Uint8Array>;
  let taken = 0;
  let takenForLast = 0;
  async function* counted(packed: AsyncIterable<Uint8Array>) {
    for await (const piece of packed) {
      taken += piece.length;
      // Packing makes little longer, if anything.
      if (taken - takenForLast > MOST_FOR_NOTHING || taken > 2 * wanted + MOST_FOR_NOTHING) {
        throw new Unreadable("its packing holds next to nothing");
      }
      yield piece;
    }
  }
  try {
    // Errors and ends travel through it in both directions.
    for await (const piece of pipeline(body, counted, unpacker, () => undefined) as AsyncIterable<Uint8Array>) {
      takenForLast = taken;
      yield piece;
    }
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code === "ZSTD_error_frameParameter_windowTooLarge") throw new Unreadable("it takes too much memory to unpack");
    // Nothing at all, said to be packed, is nothing.
    if (taken > 0 || code !== "Z_BUF_ERROR") throw error;
  }
}

function unpackerOf(contentEncoding: string | undefined): Transform | undefined {
  const layers = (contentEncoding ?? "")
    .split(",")
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity");
  const [name] = layers;
  if (name === undefined) return undefined;
  if (layers.length === 1 && Object.hasOwn(UNPACKERS, name)) return UNPACKERS[name]!();
  throw new Unreadable(`it is packed as ${contentEncoding}`);
}

export class TooLarge extends Error {}

/** At most `limit` bytes; what comes after is never waited for, and either cut off or a fault. */
export async function* upTo(
  body: AsyncIterable<Uint8Array>,
  limit: number,
  whenMore: "fail" | "truncate",
): AsyncGenerator<Uint8Array> {
  let left = limit;
  // Leaving the loop destroys the rest.
  for await (const chunk of body) {
    if (chunk.length <= left) {
      left -= chunk.length;
      yield chunk;
      continue;
    }
    if (whenMore === "fail") throw new TooLarge();
    if (left > 0) yield chunk.subarray(0, left);
    return;
  }
}

/** The beginning of a body as text. */
export async function beginningOf(body: AsyncIterable<Uint8Array>, limit: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of upTo(body, limit, "truncate")) chunks.push(chunk);
  return new TextDecoder().decode(Buffer.concat(chunks));
}

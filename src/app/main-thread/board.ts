/**
 * Short texts in memory that two threads share: what one has written, the other can read while the first is stuck.
 * Written by one thread only.
 */
export type Board = {
  /** Puts a text up; answers what to call to take it down. When all places are taken, it is left out. */
  put(text: string): () => void;
  read(): string[];
};

const PLACES = 64;
const PLACE_BYTES = 256;
export const BOARD_BYTES = PLACES * PLACE_BYTES;

/** A place begins with the length of its text; 0: it is free. */
export function createBoard(memory: SharedArrayBuffer): Board {
  const bytes = new Uint8Array(memory);
  const lengths = new Int32Array(memory);
  const encoder = new TextEncoder();
  const free = Array.from({ length: PLACES }, (_, place) => PLACES - 1 - place);
  const lengthAt = (place: number) => (place * PLACE_BYTES) / 4;
  const textAt = (place: number) => bytes.subarray(place * PLACE_BYTES + 4, (place + 1) * PLACE_BYTES);
  return {
    put(text) {
      const place = free.pop();
      if (place === undefined) return () => {};
      const { written } = encoder.encodeInto(text, textAt(place));
      Atomics.store(lengths, lengthAt(place), written);
      return () => {
        Atomics.store(lengths, lengthAt(place), 0);
        free.push(place);
      };
    },
    read() {
      return Array.from({ length: PLACES }, (_, place) =>
        Buffer.from(textAt(place).slice(0, Atomics.load(lengths, lengthAt(place)))).toString(),
      ).filter((text) => text !== "");
    },
  };
}

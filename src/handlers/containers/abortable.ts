import type { Readable } from "node:stream";

/** What is read of a stream, which breaks off with the signal. */
export async function* abortable<T>(
  stream: Readable,
  signal: AbortSignal,
  read: (stream: Readable) => AsyncIterable<T>,
): AsyncGenerator<T> {
  const cut = () => stream.destroy(new Error("nobody waits for it any more"));
  signal.addEventListener("abort", cut);
  if (signal.aborted) cut();
  try {
    yield* read(stream);
  } finally {
    signal.removeEventListener("abort", cut);
  }
}

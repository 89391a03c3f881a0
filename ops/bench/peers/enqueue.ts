/** Every peer is given its jobs a thousand at a time, by its own bulk call: the cheapest way in that each of them has. */
export const ENQUEUE_CHUNK = 1_000;

/** Calls `add` with the job numbers 0 … jobs − 1, a chunk after the other. */
export async function enqueueInChunks(
  jobs: number,
  add: (chunk: readonly number[]) => Promise<unknown>,
): Promise<void> {
  for (let from = 0; from < jobs; from += ENQUEUE_CHUNK) {
    await add(Array.from({ length: Math.min(ENQUEUE_CHUNK, jobs - from) }, (_, index) => from + index));
  }
}

/** So many at a time, in the order in which they came. */
export type Turns = {
  /** Rejects with the signal's reason when it aborts first. */
  take(signal: AbortSignal): Promise<void>;
  giveBack(): void;
  readonly waiting: number;
};

export function createTurns(size: number): Turns {
  const queue = new Set<() => void>();
  let free = size;
  return {
    take(signal) {
      signal.throwIfAborted();
      if (free > 0) {
        free--;
        return Promise.resolve();
      }
      return new Promise((resolve, reject) => {
        const leave = () => {
          queue.delete(go);
          reject(signal.reason);
        };
        const go = () => {
          signal.removeEventListener("abort", leave);
          resolve();
        };
        queue.add(go);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
    giveBack() {
      const [next] = queue;
      if (next === undefined) {
        free++;
        return;
      }
      queue.delete(next);
      next();
    },
    get waiting() {
      return queue.size;
    },
  };
}

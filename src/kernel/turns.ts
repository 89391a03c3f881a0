/** Runs work that needs a connection, when it is its call's turn. */
export type Turn = <T>(work: () => Promise<T>) => Promise<T>;

/** A call that wants connections. */
export type TurnTaker = {
  /** Whose it is: one line each. */
  of: string;
  /** It waits before the others of its line. */
  comesFirst: boolean;
  /** Nobody waits for its answer any more. */
  gone: AbortSignal;
  /** What a call is told for which there is no room. */
  refuse(waiting: number): Error;
};

export type Turns = { take(by: TurnTaker): Turn };

type Line = {
  /** Turns that are taken. */
  taken: number;
  /** Who waits, each by what lets it begin; all of `first` before any of `rest`. */
  first: Set<() => void>;
  rest: Set<() => void>;
};

/** Calls of one line, and as many again of those that come first: each holds a socket, and what it has sent. */
const MOST_WAITING = 1_000;

/**
 * The pool serves whoever asks first, so that a burst of one tenant's calls would be served whole before another's
 * single call. Here each has so many turns at a time, and its other calls wait in a line of its own. A call takes a turn
 * for each of its statements and transactions, and none while it waits for anything else. Once it has had one it is let
 * to its end: it comes first, it is not refused, and it is not dropped half-way although its caller has gone.
 */
export function createTurns(turns: number): Turns {
  const lines = new Map<string, Line>();

  function giveBack(of: string, line: Line): void {
    const queue = line.first.size > 0 ? line.first : line.rest;
    const [next] = queue;
    if (next !== undefined) {
      // Whoever is next has this one's turn.
      queue.delete(next);
      next();
      return;
    }
    line.taken--;
    if (line.taken === 0) lines.delete(of);
  }

  return {
    take({ of, comesFirst, gone, refuse }) {
      let hasBegun = false;

      function wait(line: Line): Promise<void> {
        const queue = hasBegun || comesFirst ? line.first : line.rest;
        if (hasBegun) return new Promise((resolve) => queue.add(resolve));
        if (queue.size >= MOST_WAITING) return Promise.reject(refuse(queue.size));
        return new Promise((resolve, reject) => {
          const begin = () => {
            gone.removeEventListener("abort", leave);
            resolve();
          };
          const leave = () => {
            queue.delete(begin);
            reject(gone.reason);
          };
          gone.addEventListener("abort", leave, { once: true });
          queue.add(begin);
        });
      }

      return async (work) => {
        if (!hasBegun) gone.throwIfAborted();
        const line = lines.get(of) ?? { taken: 0, first: new Set(), rest: new Set() };
        lines.set(of, line);
        if (line.taken < turns) line.taken++;
        else await wait(line);
        hasBegun = true;
        try {
          return await work();
        } finally {
          giveBack(of, line);
        }
      };
    },
  };
}

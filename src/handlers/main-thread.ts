import { AsyncLocalStorage } from "node:async_hooks";

/** An attempt whose job runs on the main thread of its worker. */
export type Occupant = { job: string; run: string; attempt: number };

/** Who is at work on the main thread, where one job can hold up all others, or end the process under them. */
export type MainThread = {
  occupy<T>(who: Occupant, work: () => Promise<T>): Promise<T>;
  /** Whose code this is called from, through all that it has awaited; undefined: no job's. */
  current(): Occupant | undefined;
  /** Who is there, and who has left since it was last asked. */
  recent(): readonly Occupant[];
};

const MOST_LEFT = 100;

/** `enter` hears of everybody who comes, and answers what to call when he leaves. */
export function createMainThread(enter: (who: Occupant) => () => void = () => () => {}): MainThread {
  const storage = new AsyncLocalStorage<Occupant>();
  const there = new Set<Occupant>();
  let left: Occupant[] = [];
  return {
    async occupy(who, work) {
      const leave = enter(who);
      there.add(who);
      try {
        return await storage.run(who, work);
      } finally {
        there.delete(who);
        if (left.length < MOST_LEFT) left.push(who);
        leave();
      }
    },
    current: () => storage.getStore(),
    recent() {
      const gone = left;
      left = [];
      return [...there, ...gone];
    },
  };
}

/** At most `max` fetches of hints in each window of `durationMs`. A ceiling on fetches: a duplicate hint uses it up too. */
export type StartRate = { max: number; durationMs: number };

export type QueueMeta = { set: Record<string, number>; remove: string[] };

// BullMQ appends 3–5 events a job to a stream that nobody of ours reads.
const EVENTS_KEPT = 10;

/**
 * What every queue's BullMQ meta hash must say, and whether this process has yet to say it. A limited queue is told on
 * every publish: its limit is then in force whenever a hint is there to be fetched, whatever was flushed in between.
 * An unlimited one is told once in an epoch (a limit lifted while nobody looked must go). A change is told at once as
 * well: hints that stand there already are held to it.
 */
export type RateLimits = {
  set(queue: string, rate: StartRate | undefined): void;
  /** Queues whose limits changed and that were not told so yet. */
  changed(): string[];
  /** Fields to write before a publish to `queue`; undefined when there is nothing to say. */
  metaFor(queue: string): QueueMeta | undefined;
  /** The last metas of these were really written. */
  confirm(queues: Iterable<string>): void;
  /** Redis began a new epoch: everything is to be said again. */
  forget(): void;
};

const MOST_REMEMBERED = 50_000;

export function createRateLimits(): RateLimits {
  const limits = new Map<string, StartRate>();
  const told = new Set<string>();
  const changed = new Set<string>();
  return {
    set(queue, rate) {
      if (rate !== undefined && !(rate.max >= 1 && rate.durationMs >= 1)) {
        throw new RangeError(
          `start rate must be at least 1 in at least 1 ms, found ${rate.max} in ${rate.durationMs} ms`,
        );
      }
      const known = limits.get(queue);
      if (known?.max === rate?.max && known?.durationMs === rate?.durationMs) return;
      if (rate === undefined) limits.delete(queue);
      else limits.set(queue, rate);
      told.delete(queue);
      changed.add(queue);
    },
    changed: () => [...changed],
    metaFor(queue) {
      const limit = limits.get(queue);
      const common = { "opts.maxLenEvents": EVENTS_KEPT };
      if (limit !== undefined) return { set: { ...common, max: limit.max, duration: limit.durationMs }, remove: [] };
      return told.has(queue) ? undefined : { set: common, remove: ["max", "duration"] };
    },
    confirm(queues) {
      if (told.size > MOST_REMEMBERED) told.clear();
      for (const queue of queues) {
        changed.delete(queue);
        if (!limits.has(queue)) told.add(queue);
      }
    },
    forget: () => told.clear(),
  };
}

/** Slots of a worker process per class: how many attempts may run side by side, and how long they usually take. */
export type Slots = {
  readonly classes: readonly string[];
  free(class_: string): number;
  used(class_: string): number;
  take(class_: string, runs: number): void;
  giveBack(class_: string, runs: number): void;
  /** Calls back whenever a slot of the class becomes free. */
  onFree(class_: string, callback: () => void): void;
  observe(class_: string, durationMs: number): void;
  /** Slots and 95th percentile of recent durations, as the worker announces them. */
  summary(): Record<string, { slots: number; p95Ms: number }>;
};

const REMEMBERED = 256;

export function createSlots(sizes: Readonly<Record<string, number>>): Slots {
  const used = new Map<string, number>();
  const callbacks = new Map<string, () => void>();
  const recent = new Map<string, number[]>();
  const seen = new Map<string, number>();
  return {
    classes: Object.keys(sizes).filter((class_) => sizes[class_]! > 0),
    free: (class_) => (sizes[class_] ?? 0) - (used.get(class_) ?? 0),
    used: (class_) => used.get(class_) ?? 0,
    take(class_, runs) {
      used.set(class_, (used.get(class_) ?? 0) + runs);
    },
    giveBack(class_, runs) {
      used.set(class_, (used.get(class_) ?? 0) - runs);
      callbacks.get(class_)?.();
    },
    onFree(class_, callback) {
      callbacks.set(class_, callback);
    },
    observe(class_, durationMs) {
      const durations = recent.get(class_) ?? [];
      const count = seen.get(class_) ?? 0;
      durations[count % REMEMBERED] = durationMs;
      recent.set(class_, durations);
      seen.set(class_, count + 1);
    },
    summary() {
      return Object.fromEntries(
        Object.entries(sizes).map(([class_, slots]) => [
          class_,
          { slots, p95Ms: percentile95(recent.get(class_) ?? []) },
        ]),
      );
    },
  };
}

/** Nothing seen yet counts as quick: the first burst must not be slow because nobody has run before. */
function percentile95(durations: readonly number[]): number {
  if (durations.length === 0) return 0;
  const sorted = durations.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * 0.95))]!;
}

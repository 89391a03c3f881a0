import type { Clock } from "../kernel/clock.ts";
import { isOutcomeUnknown } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";

const FOR_MS = 60_000;

/** Which schedules a scanner keeps apart for a minute, so that trouble with one does not cost the others their time. */
export type Troubles = {
  /** Failed alone: left out, because its failing may take a whole deadline. */
  out(): Uuid[];
  leaveOut(scheduleId: Uuid): void;
  /** Was in a batch that ended nobody knows how: goes alone. */
  alone(scheduleId: Uuid): boolean;
  /**
   * Halving such a batch at once helps little: PostgreSQL may go on with what the client gave up, and keeps its locks
   * until then.
   */
  suspect(batch: readonly Uuid[], error: unknown): void;
  /** Was done alone. */
  clear(scheduleId: Uuid): void;
};

export function createTroubles(clock: Clock): Troubles {
  const out = new Map<Uuid, number>();
  const alone = new Map<Uuid, number>();
  const holds = (untilMs: Map<Uuid, number>, id: Uuid): boolean => {
    const until = untilMs.get(id);
    if (until === undefined) return false;
    if (until > clock.monotonic()) return true;
    untilMs.delete(id);
    return false;
  };
  return {
    out: () => [...out.keys()].filter((id) => holds(out, id)),
    leaveOut: (id) => void out.set(id, clock.monotonic() + FOR_MS),
    alone: (id) => holds(alone, id),
    suspect(batch, error) {
      if (!isOutcomeUnknown(error) || batch.length === 1) return;
      for (const id of batch) alone.set(id, clock.monotonic() + FOR_MS);
    },
    clear: (id) => void alone.delete(id),
  };
}

import type { Instant } from "../kernel/clock.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { Overlap } from "./definition.ts";
import { freeGuards, slotsOf } from "./guard.ts";
import type { HeldBy, LiveState } from "./states.ts";

/**
 * Overlap is decided once, at birth, under the schedule's lock: the first open run holds the guard until it ends
 * (retry waits included), later ones are blocked behind it in order. A new run never overtakes a blocked one.
 */

export type OpenRun = {
  id: Uuid;
  scheduledAt: Instant;
  state: LiveState;
  guard: Uuid | null;
  /** `replay`: a person asked for it again. While it waits, nothing takes its place. */
  heldBy?: HeldBy;
};

/** Which open runs a policy decides by: none, the holders and whether anybody waits, or all that wait as well. */
export type Concern = "none" | "holders" | "every";

export function concernOf(overlap: Overlap): Concern {
  if (slotsOf(overlap) === Number.POSITIVE_INFINITY) return "none";
  return replacesWaiting(overlap) ? "every" : "holders";
}

function replacesWaiting({ policy }: Overlap): boolean {
  return policy === "bufferOne" || policy === "cancelRunning";
}

/** A run about to be born. */
export type Birth = { id: Uuid; scheduledAt: Instant };

export type OverlapPlan<B extends Birth> = {
  /** To be inserted: with a guard queued, without one blocked. */
  born: { birth: B; guard: Uuid | null }[];
  /** New instants that get a skip row (reason: overlap). */
  skipped: B[];
  /** Blocked runs that make way for a newer one (reason: overlap). */
  superseded: Uuid[];
  /** Holders that have not started: end as canceled now; their guards are among those given to `born`. */
  canceled: Uuid[];
  /** Running holders that are asked to stop. */
  cancelRequested: Uuid[];
};

/**
 * `open` are the schedule's live runs as read under its lock, as far as they concern the policy; `births` are in order
 * of their instants.
 * An unlimited schedule gives every run its own id as guard.
 */
export function planOverlap<B extends Birth>(
  scheduleId: Uuid,
  overlap: Overlap,
  open: readonly OpenRun[],
  births: readonly B[],
): OverlapPlan<B> {
  const plan: OverlapPlan<B> = { born: [], skipped: [], superseded: [], canceled: [], cancelRequested: [] };
  const slots = slotsOf(overlap);
  if (slots === Number.POSITIVE_INFINITY) {
    plan.born = births.map((birth) => ({ birth, guard: birth.id }));
    return plan;
  }

  const holders = open.filter((run) => run.guard !== null);
  // Surplus holders of an edit that lowered the slots hold their own ids: nothing is freed when they go.
  const slotted = (run: OpenRun) => run.guard !== run.id;
  // What a failure holds until the resume is nobody's predecessor: a person may run the schedule meanwhile.
  const waiters = open.filter((run) => run.guard === null && run.heldBy !== "pause");
  // What a person asked for again, by a backfill or a replay, is not the one that may wait, and stays.
  const asked = waiters.filter((run) => run.heldBy === "replay").length;
  let waiting = waiters.filter((run) => run.heldBy !== "replay").map((run) => run.id);
  const free = freeGuards(scheduleId, slots, new Set(holders.map((run) => run.guard!)));
  let cancelable = overlap.policy === "cancelRunning" ? [...holders] : [];
  /** Guards that this very plan frees: nobody else is being handed them, so a newer run may have one past who waits. */
  const taken: Uuid[] = [];

  for (const birth of births) {
    if (cancelable.length > 0) {
      for (const holder of cancelable) {
        if (holder.state === "running") plan.cancelRequested.push(holder.id);
        else {
          plan.canceled.push(holder.id);
          if (slotted(holder)) taken.push(holder.guard!);
        }
      }
      cancelable = [];
    }
    if (replacesWaiting(overlap) && waiting.length > 0) {
      supersede(plan, waiting);
      waiting = [];
    }
    const guard = waiting.length > 0 ? undefined : (taken.shift() ?? (asked === 0 ? free.shift() : undefined));
    if (guard !== undefined) plan.born.push({ birth, guard });
    else if (overlap.policy === "skip") plan.skipped.push(birth);
    else {
      plan.born.push({ birth, guard: null });
      waiting.push(birth.id);
    }
  }
  return plan;
}

/** A waiter born in this very plan becomes a skip; one that exists already is ended by the caller. */
function supersede<B extends Birth>(plan: OverlapPlan<B>, waiting: readonly Uuid[]): void {
  for (const id of waiting) {
    const at = plan.born.findIndex((one) => one.birth.id === id);
    if (at === -1) plan.superseded.push(id);
    else plan.skipped.push(...plan.born.splice(at, 1).map((one) => one.birth));
  }
}

import type { Instant } from "../kernel/clock.ts";
import { deriveRunId, type Uuid } from "../kernel/ids.ts";
import { boundsOf } from "./bounds.ts";
import type { Definition } from "./definition.ts";
import { type OpenRun, planOverlap } from "./overlap.ts";
import { windowOffset } from "./placement.ts";
import type { NextAfter } from "./planning/look-back.ts";
import { type CatchUp, type DueOptions, planDue, type SkippedSpan } from "./planning/misfire.ts";
import { followingAt, type Telling, tellingOf } from "./planning/told-ends.ts";
import { type HeldBy, LANES, type Lane, type SkipReason, type Trigger } from "./states.ts";

/** The moving row of a schedule, as materialize needs it. */
export type Cursor = {
  scheduleId: Uuid;
  tenantId: Uuid;
  revision: number;
  /** Digest of the revision's definition and payload; null where it was never written. */
  content?: Uuid | null;
  nextRunAt: Instant;
  /** Undefined at the start of a chain (creation, edit, resume). */
  lastNominalAt: Instant | undefined;
  runsMade: number;
  /** Where an earlier plan has reached its bound in the middle of catching up. */
  catchUp?: CatchUp | undefined;
};

export type NewRun = {
  id: Uuid;
  scheduleId: Uuid | null;
  tenantId: Uuid;
  class: string;
  lane: Lane;
  revision: number | null;
  /** Digest of what the revision says: who has read an equal one need not read this one. */
  content?: Uuid | null;
  trigger: Trigger;
  scheduledAt: Instant;
  dueAt: Instant;
  prevScheduledAt: Instant | null;
  startDeadlineAt: Instant | null;
  heldBy: HeldBy;
  guard: Uuid | null;
} & Partial<Telling>;

export type NewSkip = Omit<NewRun, "guard" | "heldBy" | "lane" | "startDeadlineAt" | "content" | keyof Telling> & {
  reason: SkipReason;
};
export type NewRange = {
  scheduleId: Uuid;
  tenantId: Uuid;
  revision: number;
  fromAt: Instant;
  toAt: Instant;
  instants: number | null;
  reason: SkipReason;
  prevScheduledAt: Instant | null;
};

export type MaterializationPlan = {
  cursor: Cursor;
  runs: NewRun[];
  skips: NewSkip[];
  ranges: NewRange[];
  superseded: Uuid[];
  canceled: Uuid[];
  cancelRequested: Uuid[];
  next: {
    runAt: Instant | null;
    dueAt: Instant | null;
    lastNominalAt: Instant | null;
    runsMade: number;
    catchUp?: CatchUp | undefined;
    /** The next instant follows from the end of a run that is open. */
    awaitsEnd?: boolean;
  };
  /** No further instant: the schedule is finished. */
  finished: boolean;
};

export const LANE_OF: Readonly<Record<Definition["priority"], Lane>> = {
  strict: LANES.strict,
  normal: LANES.normal,
  late: LANES.late,
};

/**
 * What one schedule owes at `nowAt`: a pure decision from its cursor, its definition and its open runs, all read
 * under its lock. `existing` are runs that an earlier life of the cursor has born: they count, and hold their guard if
 * they are open, but are not born again.
 */
export function planMaterialization(
  cursor: Cursor,
  definition: Definition,
  ruleNext: NextAfter,
  open: readonly OpenRun[],
  nowAt: Instant,
  options: Pick<DueOptions, "floorAt" | "missedReason" | "nothingRuns" | "place"> & { existing?: ReadonlySet<Uuid> },
): MaterializationPlan {
  const next = bounded(ruleNext, definition);
  const offset = offsetOf(cursor.scheduleId, definition, ruleNext);
  // What may still run bounds the plan: nothing is told of after the last run there may be.
  const mostRuns = (definition.maxRuns ?? Number.POSITIVE_INFINITY) - cursor.runsMade;
  const due = planDue(cursor.nextRunAt, nowAt, definition.misfire, next, {
    ...options,
    mostRuns,
    offset,
    catchUp: cursor.catchUp,
  });

  const births = due.runs.map((one) => ({
    id: deriveRunId(cursor.scheduleId, "schedule", one.at),
    scheduledAt: one.at,
    dueAt: one.dueAt,
    late: one.late,
  }));
  const fresh = births.filter((birth) => options.existing?.has(birth.id) !== true);
  const overlap = planOverlap(cursor.scheduleId, definition.overlap, open, fresh);
  const previous = chainOf(cursor.lastNominalAt, due.skips, births);

  const common = (scheduledAt: Instant, dueAt = scheduledAt) => ({
    scheduleId: cursor.scheduleId,
    tenantId: cursor.tenantId,
    class: definition.class,
    revision: cursor.revision,
    content: cursor.content ?? null,
    scheduledAt,
    dueAt,
    prevScheduledAt: previous(scheduledAt),
  });
  const runs = overlap.born.map(({ birth, guard }): NewRun => {
    const run = common(birth.scheduledAt, birth.dueAt);
    return {
      ...run,
      id: birth.id,
      lane: birth.late ? LANES.late : LANE_OF[definition.priority],
      trigger: birth.late ? "catch-up" : "schedule",
      startDeadlineAt: definition.startDeadlineMs === undefined ? null : run.dueAt + definition.startDeadlineMs,
      heldBy: guard === null ? "overlap" : "none",
      guard,
      ...tellingOf(definition),
    };
  });
  const skips: NewSkip[] = [];
  const ranges: NewRange[] = [];
  const runsMade = cursor.runsMade + overlap.born.length + births.length - fresh.length;
  for (const skip of due.skips) {
    if (skip.kind === "instant") {
      const id = deriveRunId(cursor.scheduleId, "schedule", skip.at);
      skips.push({ ...common(skip.at), id, trigger: "schedule", reason: skip.reason });
    } else {
      const { scheduleId, tenantId, revision } = cursor;
      const { fromAt, toAt, instants, reason } = skip;
      ranges.push({
        scheduleId,
        tenantId,
        revision,
        fromAt,
        toAt,
        instants,
        reason,
        prevScheduledAt: previous(fromAt),
      });
    }
  }
  for (const birth of overlap.skipped) {
    skips.push({ ...common(birth.scheduledAt, birth.dueAt), id: birth.id, trigger: "schedule", reason: "overlap" });
  }
  const lastNominalAt = due.lastNominalAt ?? cursor.lastNominalAt ?? null;
  const exhausted = runsMade >= (definition.maxRuns ?? Number.POSITIVE_INFINITY);
  const hasOpen = births.length > 0 || open.length > 0;
  const follows = definition.rule.kind === "afterCompletion" && !exhausted;
  // What did not run has ended as well: where no run is open, the next instant follows from the skip.
  const following = follows && !hasOpen ? followingAt(definition, nowAt, lastNominalAt) : undefined;
  const nextAt = exhausted ? null : following?.kind === "at" ? following.nextRunAt : due.next;
  const awaitsEnd = follows && hasOpen;
  return {
    cursor,
    runs,
    skips,
    ranges,
    superseded: overlap.superseded,
    canceled: overlap.canceled,
    cancelRequested: overlap.cancelRequested,
    next: {
      runAt: nextAt,
      dueAt: nextAt === null ? null : nextAt + (offset?.(nextAt) ?? 0),
      lastNominalAt,
      runsMade,
      catchUp: due.catchUp,
      awaitsEnd,
    },
    finished: nextAt === null && !awaitsEnd,
  };
}

/**
 * The same for a schedule whose rule cannot be computed at present: the one instant that is known is settled as ever,
 * and what comes after it stays unknown, unless there may be no further run anyway.
 */
export function planKnownInstant(
  cursor: Cursor,
  definition: Definition,
  open: readonly OpenRun[],
  nowAt: Instant,
  options: Parameters<typeof planMaterialization>[5],
): MaterializationPlan {
  const plan = planMaterialization(cursor, definition, () => null, open, nowAt, options);
  return { ...plan, finished: plan.next.runsMade >= (definition.maxRuns ?? Number.POSITIVE_INFINITY) };
}

/** How long after its nominal instant a run is due; undefined without a window. The rule's own end does not count. */
export function offsetOf(
  scheduleId: Uuid,
  { windowMs }: Pick<Definition, "windowMs">,
  ruleNext: NextAfter,
): ((nominalAt: Instant) => number) | undefined {
  if (windowMs === undefined) return undefined;
  return (nominalAt) => windowOffset(scheduleId, windowMs, nominalAt, ruleNext(nominalAt));
}

/** A rule within its start and end: what walks a schedule. */
export function bounded(next: NextAfter, definition: Pick<Definition, "startAt" | "endAt">): NextAfter {
  const { startAt, endAt } = boundsOf(definition);
  return (at) => {
    const found = next(at < startAt ? startAt - 1 : at);
    return found === null || found >= endAt ? null : found;
  };
}

/** Each nominal instant names the one before it, so that a missing link shows. */
function chainOf(
  lastNominalAt: Instant | undefined,
  skips: readonly SkippedSpan[],
  births: readonly { scheduledAt: Instant }[],
): (at: Instant) => Instant | null {
  const links = [
    ...skips.map((skip) => (skip.kind === "instant" ? [skip.at, skip.at] : [skip.fromAt, skip.toAt])),
    ...births.map((birth) => [birth.scheduledAt, birth.scheduledAt]),
  ].sort((a, b) => a[0]! - b[0]!);
  const previous = new Map<Instant, Instant | null>();
  let last = lastNominalAt ?? null;
  for (const [fromAt, toAt] of links) {
    previous.set(fromAt!, last);
    last = toAt!;
  }
  return (at) => previous.get(at) ?? null;
}

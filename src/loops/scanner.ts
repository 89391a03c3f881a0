import type { Authority } from "../authority/authority.ts";
import { announceScanner, dismissScanner } from "../authority/dispatch/presence.ts";
import { findDueLate, findDueOnTime, findFaultySchedules, findNextInstant } from "../authority/runs/due.ts";
import { findToldSchedules } from "../authority/runs/hear-ends.ts";
import { materialize } from "../authority/runs/materialize.ts";
import { bucketMask, bucketsOf } from "../domain/dispatch/rendezvous.ts";
import type { Instant } from "../kernel/clock.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";
import type { Pass } from "../kernel/loop.ts";
import { inHalves } from "./in-halves.ts";
import { createPace, type Pace } from "./pace.ts";
import type { PublishMarked } from "./publish-marked.ts";
import { createTroubles } from "./troubles.ts";
import type { Windows } from "./windows.ts";

/** Cursors looked at together, so that their runs can be put together by tenant: fewer, fuller hints. */
const LOOK = 8_000;
/** Overdue ones: a pass settles some hundred of them, and a look at 8,000 took it 60 to 100 ms. */
const LATE_LOOK = 1_000;
/** Cursors settled in one transaction. */
const BATCH = 1_000;
/** Cursors due longer ago than this come after on-time work, on a budget of their own. */
const ON_TIME_MS = 10_000;
/** Work overdue by this much is anybody's: its owner may be dead, and its lease still running. */
const OVERDUE_MS = 2_000;
const OVERDUE_EVERY_MS = 2_000;
/** A pass begins with what is on time; what is overdue, catch-up above all, has what is left of this, or the least. */
const PASS_MS = 100;
const LATE_LEAST_MS = 50;
/** Overdue cursors go into transactions of about this length, so that a pass ends in time on a slow machine, too. */
const LATE_PACE = { targetMs: 50, first: 50, least: 5, most: BATCH };
/** Catch-up rests so many times as long as it took: what is on time needs workers and database, too. */
const REST = 2;
const LEASE_MS = 10_000;
const LEASE_EVERY_MS = 3_000;

/**
 * Turns due instants into runs: on-time work first, then a budget of overdue work. Sleeps until the earliest known
 * instant, to the millisecond, and looks at least once a second anyway.
 */
export function createScanner(options: {
  authority: Authority;
  id: Uuid;
  windows: Windows;
  publishMarked: PublishMarked;
}): Pass & { leave(): Promise<void> } {
  const { authority, id, windows, publishMarked } = options;
  const { clock } = authority;
  let mask = bucketMask([]);
  let leasedAt = Number.NEGATIVE_INFINITY;
  let overdueAt = Number.NEGATIVE_INFINITY;
  let restUntilMs = Number.NEGATIVE_INFINITY;
  const isResting = () => clock.monotonic() < restUntilMs;
  /** Database clock minus process clock: only for deciding when to look. */
  let aheadMs = 0;
  const troubles = createTroubles(clock);
  const latePace = createPace(LATE_PACE);

  /** What is left out for a while takes nobody's place in a look. */
  const lookFor = (limit: number) => ({ mask, limit, except: troubles.out() });

  async function renewLease(): Promise<void> {
    if (clock.monotonic() - leasedAt < LEASE_EVERY_MS) return;
    leasedAt = clock.monotonic();
    mask = bucketMask(bucketsOf(id, await announceScanner(authority, id, LEASE_MS)));
  }

  async function settleBatch(
    batch: readonly Uuid[],
    hasTime: () => boolean,
  ): Promise<{ did: number; stillDue: boolean }> {
    const all = { did: 0, stillDue: false };
    for (let rest = batch; rest.length > 0; ) {
      if (!hasTime()) return { ...all, stillDue: true };
      await windows.refresh();
      const done = await materialize(authority, rest, windows);
      await authority.faults.reach("scanner:committed");
      await publishMarked(done.intents, done.epoch);
      if (done.intents.some((row) => row.published_at === null)) authority.signals.outboxGrew(done.nowAt);
      all.did += done.runs + done.skips + done.heard;
      all.stillDue ||= done.stillDue;
      rest = done.unplanned;
    }
    return all;
  }

  async function settle(
    scheduleIds: readonly Uuid[],
    untilMs = Number.POSITIVE_INFINITY,
    pace: Pick<Pace, "size"> & Partial<Pace> = { size: BATCH },
  ): Promise<{ did: number; leftOut: number; stillDue: boolean }> {
    const all = { did: 0, leftOut: 0, stillDue: false };
    const together = scheduleIds.filter((id) => !troubles.alone(id));
    const apart = scheduleIds.filter(troubles.alone);
    let refused = false;
    // One that is refused is looked for until it is found: passes that all end before that would never get past it.
    const hasTime = () => clock.monotonic() < untilMs || (refused && all.leftOut === 0);
    while (together.length + apart.length > 0) {
      const startedMs = clock.monotonic();
      if (startedMs >= untilMs) return { ...all, stillDue: true };
      const batch = together.length > 0 ? together.splice(0, pace.size) : [apart.shift()!];
      await inHalves(
        batch,
        async (part) => {
          try {
            const done = await settleBatch(part, hasTime);
            if (done.did > 0 && part.length === 1) troubles.clear(part[0]!);
            all.did += done.did;
            all.stillDue ||= done.stillDue;
          } catch (error) {
            troubles.suspect(part, error);
            refused = true;
            throw error;
          }
        },
        (schedule, err) => {
          troubles.leaveOut(schedule);
          all.leftOut++;
          authority.log.error({ schedule, err, reason: messageOf(err) }, "a schedule cannot be materialized");
        },
      );
      pace.took?.(batch.length, clock.monotonic() - startedMs);
    }
    return all;
  }

  return {
    name: "scanner",
    everyMs: 250,
    idleMs: 1_000,
    async pass() {
      await renewLease();
      const startedMs = clock.monotonic();
      const databaseNow: Instant = clock.now() + aheadMs;
      const onTime = await findDueOnTime(authority, databaseNow - ON_TIME_MS, lookFor(LOOK));
      // Beside the due index: schedules that were told of an end.
      const told = await findToldSchedules(authority, lookFor(LOOK));
      let { did, stillDue: more } = await settle([...new Set([...onTime, ...told])]);
      more ||= told.length > 0;
      if (onTime.length < LOOK && clock.monotonic() - overdueAt >= OVERDUE_EVERY_MS && !isResting()) {
        const late = [
          ...(await findDueLate(authority, databaseNow - OVERDUE_MS, lookFor(LATE_LOOK))),
          ...(await findFaultySchedules(authority, lookFor(LOOK))),
        ];
        const lateMs = clock.monotonic();
        const untilMs = Math.max(startedMs + PASS_MS, lateMs + LATE_LEAST_MS);
        const settled = await settle(late, untilMs, latePace);
        did += settled.did;
        if (late.length < LATE_LOOK && !settled.stillDue) overdueAt = clock.monotonic();
        else if (settled.did + settled.leftOut > 0)
          restUntilMs = clock.monotonic() + REST * (clock.monotonic() - lateMs);
      } else more ||= onTime.length === LOOK;
      const next = await findNextInstant(authority, mask, databaseNow);
      aheadMs = next.nowAt - clock.now();
      // Only who got something done may ask for another pass at once: nobody may be able to do what is left right now.
      if (more && did > 0) return { did, more };
      // A holder that is ending right now leaves its cursor due: look again in a moment, not in a loop.
      if (did === 0 && onTime.length + told.length > 0) return { did, more: false, nextAt: clock.now() + 5 };
      const restMs = restUntilMs - clock.monotonic();
      const nextAt = Math.min(
        next.nextDueAt === null ? Number.POSITIVE_INFINITY : next.nextDueAt - aheadMs,
        restMs > 0 ? clock.now() + restMs : Number.POSITIVE_INFINITY,
      );
      return { did, more: false, nextAt: nextAt === Number.POSITIVE_INFINITY ? undefined : nextAt };
    },
    leave: () => dismissScanner(authority, id),
  };
}

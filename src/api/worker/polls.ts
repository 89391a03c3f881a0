import type { Authority } from "../../authority/authority.ts";
import { findRemoteWork, type RemoteDemand, type RemoteHint } from "../../authority/dispatch/remote.ts";
import type { Clock, Timer } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { createCrowds, type Waiting } from "./crowds.ts";

/** A worker that asks for work, and waits where there is none. */
export type Poll = {
  tenantId: Uuid;
  jobs: readonly string[];
  /** How many runs it could begin now. */
  slots: number;
  waitMs: number;
  /** Nobody waits for the answer any more. */
  gone: AbortSignal;
};

export type Polls = {
  /**
   * Hints as soon as there are some; none when the time is over, the caller has gone, or the process ends. Refused: the
   * tenant has too many of them here.
   */
  wait(poll: Poll): Promise<RemoteHint[]>;
  /** There may be something: look now. */
  wake(): void;
  close(): void;
};

/** News tells of work at once; this is how long lost news may cost, and how late a run starts that waits for its time. */
const LOOK_EVERY_MS = 1_000;
/**
 * However much news there is: looks take a tenth of the time at most. One that took seconds (a database that is busy) is no
 * reason to keep everybody waiting for a minute.
 */
const LEAST_PAUSE_MS = 20;
const PAUSE_FACTOR = 10;
const LONGEST_PAUSE_MS = 1_000;
/** Who was told of a row has so long to claim it before others hear of it. */
const TOLD_FOR_MS = 3_000;

/**
 * The workers of all tenants that wait at this process. One look serves them all, or a part of what they ask for and the next
 * one another, and no connection is held while they wait. A row is told to one of them, the one that has waited longest
 * first; the claim decides all the same.
 */
export function createPolls(deps: { authority: Authority; clock: Clock }): Polls {
  const { authority, clock } = deps;
  const crowds = createCrowds();
  const told = new Map<bigint, number>();
  let next: { atMs: number; timer: Timer } | undefined;
  let restUntilMs = 0;
  let isLooking = false;
  let isWoken = false;
  let isClosed = false;
  /** A look has failed: so that what one tenant asks for is in nobody's way, each has a look of its own. */
  let isApart = false;

  function lookAt(wantedMs: number): void {
    const atMs = Math.max(wantedMs, restUntilMs);
    if (isLooking || crowds.isEmpty() || (next !== undefined && next.atMs <= atMs)) return;
    next?.timer.cancel();
    next = { atMs, timer: clock.after(atMs - clock.monotonic(), () => void look()) };
  }

  async function look(): Promise<void> {
    next = undefined;
    isLooking = true;
    if (isWoken || crowds.isRoundOver()) crowds.startRound();
    isWoken = false;
    const beganMs = clock.monotonic();
    for (const [row, untilMs] of told) if (untilMs <= beganMs) told.delete(row);
    const demands = crowds.takeTurn();
    let failed = false;
    for (const some of isApart ? demands.map((one) => [one]) : [demands]) {
      if (!(await lookFor(some))) failed = true;
    }
    isApart = failed;
    isLooking = false;
    const endedMs = clock.monotonic();
    const pauseMs = failed ? LONGEST_PAUSE_MS : Math.max(LEAST_PAUSE_MS, PAUSE_FACTOR * (endedMs - beganMs));
    restUntilMs = endedMs + Math.min(LONGEST_PAUSE_MS, pauseMs);
    lookAt(isWoken || !crowds.isRoundOver() ? endedMs : endedMs + LOOK_EVERY_MS);
  }

  async function lookFor(demands: readonly RemoteDemand[]): Promise<boolean> {
    try {
      const hints = await findRemoteWork(authority, demands, [...told.keys()]);
      const now = clock.monotonic();
      // Whoever has left meanwhile is told nothing.
      for (const hint of hints) if (crowds.deal(hint)) told.set(hint.rowId, now + TOLD_FOR_MS);
      for (const demand of demands) crowds.settle(demand);
      return true;
    } catch (error) {
      for (const demand of demands) crowds.fail(demand, error);
      return false;
    }
  }

  return {
    wait(poll) {
      if (isClosed || poll.gone.aborted) return Promise.resolve([]);
      return new Promise((resolve, reject) => {
        const leave = () => {
          crowds.leave(one);
          over.cancel();
          poll.gone.removeEventListener("abort", hangUp);
        };
        const hangUp = () => one.answer([]);
        const one: Waiting = {
          ...poll,
          answer(hints) {
            leave();
            resolve(hints);
          },
          refuse(error) {
            leave();
            reject(error);
          },
        };
        crowds.join(one);
        const over = clock.after(poll.waitMs, () => crowds.end(one));
        poll.gone.addEventListener("abort", hangUp);
        lookAt(clock.monotonic());
      });
    },
    wake() {
      isWoken = true;
      lookAt(clock.monotonic());
    },
    close() {
      isClosed = true;
      next?.timer.cancel();
      for (const one of crowds.everybody()) one.answer([]);
    },
  };
}

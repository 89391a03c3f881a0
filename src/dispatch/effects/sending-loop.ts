import type { Authority } from "../../authority/authority.ts";
import { messageOf } from "../../kernel/errors.ts";
import { mintId, randomBucket, type Uuid } from "../../kernel/ids.ts";
import { inTime } from "../../kernel/in-time.ts";
import { createLoop, type LoopService, type Pass } from "../../kernel/loop.ts";
import { insist } from "../insist.ts";

/** Longest attempt of any sender. */
const SEND_LIMIT_MS = 120_000;
/** Nobody else sends it meanwhile: the longest attempt, and time to say what came of it. */
export const SEND_LEASE_MS = 180_000;
/** Latest a send may begin after its claim was asked for, so that it ends within the lease. */
const BEGIN_WITHIN_MS = SEND_LEASE_MS - SEND_LIMIT_MS - 10_000;
/** How long the database may be away before a report is left to the lease. */
const REPORT_WITHIN_MS = 600_000;
const LOOK_EVERY_MS = 2_000;

/** What is sent by a loop, and how: grants are claimed, sent outside any transaction, and settled. */
export type Sending<Id, Grant, Report> = {
  name: string;
  /** How many are sent side by side by one process. */
  concurrency: number;
  /** Ids of what may be sent now, or how long (ms) until there is any (null: nobody knows of any). */
  findDue(limits: {
    perTenant: number;
    all: number;
    sending: readonly Grant[];
  }): Promise<{ ids: Id[]; nextInMs: number | null }>;
  /** Knows a repeat by its claim id. */
  claim(claim: { claimId: Uuid; ids: Id[]; leaseMs: number; repeated: boolean }): Promise<Grant[]>;
  /** Tries once, within the signal. */
  send(grant: Grant, signal: AbortSignal): Promise<Report>;
  /** What is reported where nobody tried. */
  notSent(message: string): Report;
  /** Says what came of it. */
  settle(grant: Grant, report: Report): Promise<void>;
  /** For the log. */
  nameOf(grant: Grant): string;
  close(): Promise<void>;
};

export type Sender = Pass &
  Pick<LoopService, "start" | "stop" | "wake"> & {
    /** Resolves when nothing is being sent. */
    drain(): Promise<void>;
  };

/**
 * Finds what is due, claims as much as it has room for, sends, and reports. Any number of processes may; a claim decides.
 * Stops in this order: no more claims; sends end within the grace; the rest is told to stop, and says what it knows.
 */
export function createSendingLoop<Id, Grant, Report>(
  authority: Authority,
  sendings: Sending<Id, Grant, Report>,
  /** How long sends may go on after stop was asked for. */
  graceMs: number,
): Sender {
  const { clock, log, metrics } = authority;
  const { concurrency } = sendings;
  const sending = new Map<Promise<void>, Grant>();
  /** Found by the last look. */
  let found: ReadonlySet<Id> = new Set();
  const stopping = new AbortController();
  const ending = new AbortController();

  const page: Pass = {
    name: sendings.name,
    everyMs: LOOK_EVERY_MS,
    idleMs: LOOK_EVERY_MS,
    async pass() {
      const room = concurrency - sending.size;
      if (room <= 0) return { did: 0, more: false };
      // Receivers of one tenant, however slow, leave room for the others.
      const limits = { perTenant: Math.ceil(concurrency / 4), all: room, sending: [...sending.values()] };
      const { ids, nextInMs } = await sendings.findDue(limits);
      const grants = ids.length === 0 ? [] : await claim(ids);
      // Some are settled by their claim. What is found again and not granted is locked by somebody: no reason to hurry.
      const isNew = ids.some((id) => !found.has(id));
      found = new Set(ids);
      const nextAt = nextInMs === null || nextInMs === 0 ? undefined : clock.now() + nextInMs;
      return { did: grants.length, more: (grants.length > 0 || isNew) && sending.size < concurrency, nextAt };
    },
  };
  const loop = createLoop(page, { clock, log, metrics });

  async function claim(ids: Id[]): Promise<Grant[]> {
    const claimId = mintId(clock.now(), randomBucket());
    const askedMs = clock.monotonic();
    const patience = { ending: ending.signal, untilMs: askedMs + BEGIN_WITHIN_MS };
    const grants = await insist(authority, patience, (tries) =>
      sendings.claim({ claimId, ids, leaseMs: SEND_LEASE_MS, repeated: tries > 1 }),
    );
    for (const grant of grants) {
      const one = attempt(grant, askedMs).catch((error: unknown) =>
        log.error(
          { effect: sendings.nameOf(grant), reason: messageOf(error) },
          "an attempt to send was lost; its lease ends it",
        ),
      );
      sending.set(one, grant);
      void one.finally(() => {
        sending.delete(one);
        loop.wake();
      });
    }
    return grants;
  }

  async function attempt(grant: Grant, askedMs: number): Promise<void> {
    const report = await tryOnce(grant, askedMs);
    await authority.faults.reach("effect:sent");
    const patience = { ending: ending.signal, untilMs: clock.monotonic() + REPORT_WITHIN_MS };
    await insist(authority, patience, () => sendings.settle(grant, report));
  }

  async function tryOnce(grant: Grant, askedMs: number): Promise<Report> {
    // A process that was frozen in between must not begin what somebody else may be doing by now.
    if (clock.monotonic() - askedMs > BEGIN_WITHIN_MS || stopping.signal.aborted) {
      return sendings.notSent("the sender came too late to try");
    }
    return inTime(clock, { withinMs: SEND_LIMIT_MS, signal: stopping.signal }, (over) => sendings.send(grant, over));
  }

  async function drain(): Promise<void> {
    while (sending.size > 0) await Promise.all(sending.keys());
  }

  let stopped: Promise<void> | undefined;
  return {
    ...page,
    start: () => loop.start(),
    wake: () => loop.wake(),
    drain,
    stop() {
      stopped ??= (async () => {
        await loop.stop();
        const grace = clock.after(graceMs, () => stopping.abort());
        const patience = clock.after(graceMs + 5_000, () => ending.abort());
        await drain();
        grace.cancel();
        patience.cancel();
        await sendings.close();
      })();
      return stopped;
    },
  };
}

import type { ResourceClass } from "../domain/definition.ts";
import type { LeaseTerms } from "../domain/lease.ts";
import type { ZoneSource } from "../domain/recurrence/zone-source.ts";
import type { MasterKeys } from "../domain/secrets/sealing.ts";
import type { Chance } from "../kernel/chance.ts";
import type { Clock, Instant } from "../kernel/clock.ts";
import type { FaultPoints } from "../kernel/faults.ts";
import type { Log } from "../kernel/log.ts";
import type { Metrics } from "../kernel/metrics.ts";
import type { Origin } from "../kernel/origin.ts";
import type { Database, Transaction } from "../store/database.ts";
import { isDeadlock, sqlStateOf } from "../store/sql-errors.ts";
import { type CalendarCache, createCalendarCache } from "./calendars/placings.ts";
import { isNoFault } from "./refusal.ts";
import { createRevisionCache, type RevisionCache } from "./revisions.ts";
import { createVault, type Vault } from "./secrets/vault.ts";
import type { PinnedZones } from "./timezones/pinned-zones.ts";

/**
 * The authority is the only code that changes durable truth. Verbs are functions that take it first, one file each,
 * one transaction over a batch each: lock → read authority time → decide → write → intend.
 */
export type Authority = {
  readonly db: Database;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly pinned: PinnedZones;
  /** The tz database: of the transaction this is asked in; outside of one, the newest adopted. */
  readonly zones: ZoneSource;
  /** Its version, for cursors to remember what planned them. */
  readonly tzVersion: string;
  readonly settings: AuthoritySettings;
  readonly faults: FaultPoints;
  readonly chance: Chance;
  readonly revisions: RevisionCache;
  readonly calendars: CalendarCache;
  readonly signals: Signals;
  /** Seals secrets and opens them. */
  readonly vault: Vault;
  /** One transaction. A deadlock is retried; a lost connection is an error with code `outcome-unknown`. */
  transact<T>(verb: string, work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** The same authority, for one call to the API: what its verbs write down says where they were asked. */
  from(origin: Origin): Authority;
};

export type AuthoritySettings = {
  shard: number;
  lease: LeaseTerms;
  /** Longest attempt per class, whatever a definition asks for. */
  attemptLimitMs: Readonly<Record<ResourceClass, number>>;
  /** Longest a verb may take, as its caller sees it. */
  verbDeadlineMs: number;
  /** Longest wait for one row lock. */
  lockTimeoutMs: number;
};

/** Best-effort news for loops that could otherwise nap through it; called after commit, never awaited. */
export type Signals = {
  /** A cursor may be due earlier than was known. */
  scheduleMoved(nextDueAt: Instant | null): void;
  /** Outbox rows became available at `availableAt`. */
  outboxGrew(availableAt: Instant): void;
  /** Running attempts of a lane ended: a parked tenant may go on. */
  slotsFreed(): void;
  /** Effects may be sent. */
  effectsDue(): void;
};

const noSignals: Signals = {
  scheduleMoved: () => {},
  outboxGrew: () => {},
  slotsFreed: () => {},
  effectsDue: () => {},
};

const DEADLOCK_TRIES = 5;

export function createAuthority(
  parts: Omit<
    Authority,
    "transact" | "from" | "vault" | "revisions" | "calendars" | "signals" | "zones" | "tzVersion"
  > & {
    signals?: Signals;
    /** Without any, payloads with secrets are refused. */
    masterKeys?: MasterKeys | undefined;
  },
): Authority {
  const { db, clock, metrics, settings, log, pinned } = parts;
  let vault: Vault | undefined;
  const of = (origin: Origin | null): Pick<Authority, "transact"> => ({
    async transact(verb, work) {
      const startedAt = clock.monotonic();
      for (let tries = 1; ; tries++) {
        try {
          const { verbDeadlineMs: deadlineMs, lockTimeoutMs } = settings;
          return await pinned.hold(() => db.transact({ deadlineMs, lockTimeoutMs, origin }, work));
        } catch (error) {
          if (isNoFault(error)) throw error;
          metrics.verbFaults.inc({ verb, code: sqlStateOf(error) ?? codeOf(error) });
          if (!isDeadlock(error) || tries >= DEADLOCK_TRIES) throw error;
          log.warn({ verb, tries }, "a verb met a deadlock and is tried again");
        } finally {
          metrics.verbSeconds.observe({ verb }, (clock.monotonic() - startedAt) / 1000);
        }
      }
    },
  });
  const authority: Authority = {
    ...parts,
    ...of(null),
    signals: parts.signals ?? noSignals,
    calendars: createCalendarCache(),
    revisions: createRevisionCache(pinned),
    get vault() {
      vault ??= createVault(authority, parts.masterKeys);
      return vault;
    },
    get zones() {
      return pinned.book().zones;
    },
    get tzVersion() {
      return pinned.book().zones.version;
    },
    // Its own transactions, and everything else of this one, also what changes while the call lasts.
    from(origin) {
      return Object.create(this, Object.getOwnPropertyDescriptors(of(origin))) as Authority;
    },
  };
  return authority;
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" ? code : "unknown";
}

import type { Grant } from "../authority/attempts/grant.ts";
import type { Authority } from "../authority/authority.ts";
import { announceWorker, dismissWorker, forgetWorkers } from "../authority/dispatch/presence.ts";
import type { SlotAccounts } from "../domain/dispatch/slot-accounts.ts";
import { NO_SECRETS } from "../domain/secrets/known.ts";
import { describeThrown } from "../handlers/outcome.ts";
import type { JobRegistry } from "../handlers/registry.ts";
import type { RunReader } from "../handlers/run-reader.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";
import { createLoop } from "../kernel/loop.ts";
import { type Service, startAll, stopAll } from "../kernel/service.ts";
import type { ObjectStore } from "../objects/port.ts";
import { runAttempt } from "./attempt.ts";
import { createClaimer } from "./claimer.ts";
import { createFetcher } from "./fetcher.ts";
import { createHeartbeats } from "./heartbeats.ts";
import { createHeldAttempts, type HeldAttempt } from "./held.ts";
import { createReports } from "./reports.ts";
import type { SecretsInUse } from "./secrets-in-use.ts";
import { createSlots } from "./slots.ts";
import type { Source } from "./source.ts";

export type WorkerOptions = {
  id: Uuid;
  name: string;
  version: string;
  authority: Authority;
  /** The same authority on connections of its own: heartbeats never queue behind other work. */
  heartbeatAuthority: Authority;
  registry: JobRegistry;
  objects: ObjectStore;
  reader: RunReader;
  secrets: SecretsInUse;
  source: Source;
  claimLanes: number;
  /** How long running attempts may go on after stop was asked for. */
  graceMs: number;
  /** Whose the slots of each class are. */
  accounts: ReadonlyMap<string, SlotAccounts>;
};

export type Worker = Service & {
  /** There may be something to fetch in this class. */
  wake(class_: string): void;
  readonly running: number;
};

const ANNOUNCE_EVERY_MS = 5_000;
/** Handlers that were told to stop get this long to do so before the process ends under them. */
const ABORT_GRACE_MS = 5_000;

/**
 * A worker process: slots, fetchers, attempts, one heartbeat timer.
 * Stops in this order: no more fetching; attempts end within the grace; the rest is told to stop and given back
 * without spending its retry budget; reports are out; heartbeats last.
 */
export function createWorker(options: WorkerOptions): Worker {
  const { authority, source, accounts } = options;
  const { clock, log, metrics } = authority;
  const held = createHeldAttempts();
  const slots = createSlots(Object.fromEntries([...accounts].map(([class_, one]) => [class_, one.slots])));
  const ending = new AbortController();
  const reports = createReports(authority, ending.signal);
  const heartbeats = createHeartbeats({ authority: options.heartbeatAuthority, held, ending: ending.signal });
  const tools = {
    authority,
    registry: options.registry,
    objects: options.objects,
    reader: options.reader,
    secrets: options.secrets,
    reports,
    heartbeats,
    ending: ending.signal,
    observe: slots.observe,
  };
  const claimer = createClaimer({ authority, worker: options.name, lanes: options.claimLanes, onGrants });
  const fetchers = new Map(
    slots.classes.map((class_) => [class_, createFetcher({ class: class_, source, claimer, slots, clock, log })]),
  );
  const announcer = createLoop(
    {
      name: "worker-announcer",
      everyMs: ANNOUNCE_EVERY_MS,
      idleMs: ANNOUNCE_EVERY_MS,
      async pass() {
        for (const class_ of slots.classes) metrics.slotsInUse.set({ class: class_ }, slots.used(class_));
        await announceWorker(authority, {
          id: options.id,
          name: options.name,
          slots: slots.summary(),
          version: options.version,
        });
        return { did: 0, more: false };
      },
    },
    { clock, log, metrics },
  );

  function onGrants(grants: readonly Grant[], trustedUntilMs: number): void {
    const nowMs = clock.monotonic();
    for (const grant of grants) {
      const deadlineMs = nowMs + (grant.deadlineAt - grant.startedAt);
      const attempt: HeldAttempt = {
        grant,
        stop: new AbortController(),
        // A lease never outlasts its attempt.
        trustedUntilMs: Math.min(trustedUntilMs, deadlineMs),
        renewedMs: nowMs,
        deadlineMs,
        progress: undefined,
        secrets: NO_SECRETS,
      };
      held.add(attempt);
      slots.take(grant.class, 1);
      accounts.get(grant.class)!.hold(grant.tenantId, 1);
      void runAttempt(tools, attempt)
        // It says that it never rejects; should it be wrong, one attempt is lost and not the process.
        .catch((error) =>
          log.error(
            { reason: options.secrets.scrub(describeThrown(error)) },
            "an attempt was lost; its lease will end it",
          ),
        )
        .finally(() => {
          held.remove(attempt);
          accounts.get(grant.class)!.hold(grant.tenantId, -1);
          slots.giveBack(grant.class, 1);
        });
    }
  }

  async function endAttempts(): Promise<void> {
    await emptyWithin(options.graceMs);
    if (held.size === 0) return;
    log.info({ attempts: held.size }, "the grace is over: running attempts are told to stop and given back");
    for (const attempt of held.all()) attempt.stop.abort("shutdown");
    await emptyWithin(ABORT_GRACE_MS);
    // From now on what gets no answer is given up instead of repeated.
    ending.abort();
    if (held.size > 0) log.warn({ attempts: held.size }, "handlers did not stop; their leases will end their attempts");
  }

  /** Waits until nothing is held, at most so long. */
  async function emptyWithin(ms: number): Promise<void> {
    const over = new AbortController();
    const timer = clock.after(ms, () => over.abort());
    await held.empty(over.signal);
    timer.cancel();
  }

  let stopping: Promise<void> | undefined;
  return {
    name: "worker",
    async start() {
      // Those that were killed could not sign off.
      await forgetWorkers(authority);
      await startAll([heartbeats, announcer, ...fetchers.values()]);
    },
    wake: (class_) => fetchers.get(class_)?.wake(),
    get running() {
      return held.size;
    },
    stop() {
      stopping ??= (async () => {
        claimer.giveUp();
        await stopAll([...fetchers.values()]);
        await claimer.drain();
        await endAttempts();
        await reports.drain();
        await announcer.stop();
        await dismissWorker(authority, options.id).catch((error) =>
          log.warn({ reason: messageOf(error) }, "the worker could not sign off"),
        );
        await heartbeats.stop();
      })();
      return stopping;
    },
  };
}

import { adoptRuns } from "../authority/attempts/adopt.ts";
import type { Grant } from "../authority/attempts/grant.ts";
import type { LogStore } from "../authority/attempts/keep-log.ts";
import type { Authority } from "../authority/authority.ts";
import type { Holder } from "../authority/containers/holders.ts";
import { announceWorker, dismissWorker, forgetWorkers } from "../authority/dispatch/presence.ts";
import type { SlotAccounts } from "../domain/dispatch/slot-accounts.ts";
import { trustedUntil } from "../domain/lease.ts";
import { NO_SECRETS } from "../domain/secrets/known.ts";
import type { IssueCallback } from "../handlers/callbacks.ts";
import type { JobKinds } from "../handlers/kinds.ts";
import { describeThrown } from "../handlers/outcome.ts";
import type { JobRegistry } from "../handlers/registry.ts";
import type { RunReader } from "../handlers/run-reader.ts";
import { messageOf } from "../kernel/errors.ts";
import type { Uuid } from "../kernel/ids.ts";
import { inTime } from "../kernel/in-time.ts";
import { createLoop } from "../kernel/loop.ts";
import { type Service, startAll, stopAll } from "../kernel/service.ts";
import type { ObjectStore } from "../objects/port.ts";
import { runAttempt } from "./attempt.ts";
import { createClaimer } from "./claimer.ts";
import { createFetcher } from "./fetcher.ts";
import { createHeartbeats } from "./heartbeats.ts";
import { createHeldAttempts, type HeldAttempt } from "./held.ts";
import { createLogKeeper } from "./logs/log-keeper.ts";
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
  kinds: JobKinds;
  objects: ObjectStore;
  /** Where what attempts say is kept. */
  logs: LogStore;
  reader: RunReader;
  issueCallback: IssueCallback;
  secrets: SecretsInUse;
  source: Source;
  claimLanes: number;
  /** When the event loop of the process was blocked, if it was. */
  blocked?: () => { agoMs: number; ms: number } | undefined;
  /** Most bytes of one output. */
  outputLimitBytes: number;
  /** How long running attempts may go on after stop was asked for. */
  graceMs: number;
  /** Whose the slots of each class are. */
  accounts: ReadonlyMap<string, SlotAccounts>;
};

export type Worker = Service & {
  /** There may be something to fetch in this class. */
  wake(class_: string): void;
  /** Takes detached attempts over, as many as there are slots for; answers how many. */
  adopt(wanted: readonly Holder[]): Promise<number>;
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
  const logs = createLogKeeper(authority, options.logs);
  const tools = {
    authority,
    registry: options.registry,
    kinds: options.kinds,
    objects: options.objects,
    outputLimitBytes: options.outputLimitBytes,
    reader: options.reader,
    issueCallback: options.issueCallback,
    secrets: options.secrets,
    reports,
    logs,
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
          blocked: options.blocked?.(),
        });
        return { did: 0, more: false };
      },
    },
    { clock, log, metrics },
  );

  function onGrants(grants: readonly Grant[], trustedUntilMs: number): void {
    for (const grant of grants) begin(grant, trustedUntilMs, grant.deadlineAt - grant.startedAt);
  }

  function begin(grant: Grant, trustedUntilMs: number, remainingMs: number): void {
    const nowMs = clock.monotonic();
    const deadlineMs = nowMs + remainingMs;
    const attempt: HeldAttempt = {
      grant,
      stop: new AbortController(),
      // A lease never outlasts its attempt.
      trustedUntilMs: Math.min(trustedUntilMs, deadlineMs),
      renewedMs: nowMs,
      deadlineMs,
      progress: undefined,
      secrets: NO_SECRETS,
      log: undefined,
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

  async function adopt(wanted: readonly Holder[]): Promise<number> {
    const room = new Map(slots.classes.map((class_) => [class_, slots.free(class_)]));
    const fitting = wanted.filter((one) => {
      const left = (room.get(one.class) ?? 0) - 1;
      room.set(one.class, left);
      return left >= 0;
    });
    if (fitting.length === 0 || stopping !== undefined) return 0;
    const sentAtMs = clock.monotonic();
    const outcomes = await adoptRuns(
      authority,
      fitting.map(({ runId, fence }) => ({ runId, fence, worker: options.name })),
    );
    let adopted = 0;
    for (const outcome of outcomes) {
      // An answer that comes late may name what is ours already.
      if (outcome.kind !== "adopted" || held.get(outcome.grant.runId)?.grant.fence === outcome.grant.fence) continue;
      begin(outcome.grant, trustedUntil(sentAtMs, authority.settings.lease), outcome.remainingMs);
      adopted++;
    }
    return adopted;
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
  const emptyWithin = (ms: number) => inTime(clock, { withinMs: ms }, (over) => held.empty(over));

  let stopping: Promise<void> | undefined;
  return {
    name: "worker",
    async start() {
      // Those that were killed could not sign off.
      await forgetWorkers(authority);
      await startAll([heartbeats, logs, announcer, ...fetchers.values()]);
    },
    wake: (class_) => fetchers.get(class_)?.wake(),
    adopt,
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
        await logs.stop();
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

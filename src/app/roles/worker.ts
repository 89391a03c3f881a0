import { createContainerKeeper } from "../../dispatch/containers/keeper.ts";
import { createSecretsInUse } from "../../dispatch/secrets-in-use.ts";
import { directSource, eitherSource, redisSource, type Source } from "../../dispatch/source.ts";
import { createWorker } from "../../dispatch/worker.ts";
import { OWN_CLASSES } from "../../domain/definition.ts";
import { SlotAccounts } from "../../domain/dispatch/slot-accounts.ts";
import type { JobRegistry } from "../../handlers/registry.ts";
import { createConsumer } from "../../hints/consumer.ts";
import { createLoop } from "../../kernel/loop.ts";
import type { Service } from "../../kernel/service.ts";
import { createReminder } from "../../loops/reminder.ts";
import { runsBetween } from "../../store/reads/run-summary.ts";
import type { Core } from "../core.ts";
import { issueCallbacks } from "../kinds/callbacks.ts";
import { openKinds } from "../kinds/open-kinds.ts";
import { objectsReady } from "../objects.ts";
import { createStrayFaults } from "../stray-faults.ts";

/** Wake-ups tell of news at once; this is how long a lost one may cost. */
const LOOK_EVERY_MS = 2_000;
/** Part of a class's slots that tenants at or above their share never take. */
const RESERVED_FRACTION = 0.1;

/** Runs attempts. */
export function workerRole(
  core: Core,
  registry: JobRegistry,
  /** What slot time is counted by (ms). */
  slotClock = () => core.clock.monotonic(),
  /** Where the API is reached from outside, for callbacks; asked when one is made. */
  publicUrl: () => string | undefined = () => core.config.PUNCTUAL_PUBLIC_URL,
): Service[] {
  const { authority, config, redis, clock, log } = core;
  const slots = {
    short: config.PUNCTUAL_SLOTS_SHORT,
    long: config.PUNCTUAL_SLOTS_LONG,
    memory: config.PUNCTUAL_SLOTS_MEMORY,
  };
  const served = OWN_CLASSES.filter((class_) => slots[class_] > 0);
  // One of each class for both ways that hints come: what happens to Redis does not change who has had how much.
  const accounts = new Map(
    served.map((class_) => [
      class_,
      new SlotAccounts({ slots: slots[class_], reservedFraction: RESERVED_FRACTION, now: slotClock }),
    ]),
  );
  const consumer =
    redis === undefined
      ? undefined
      : createConsumer({
          redis: redis.connection,
          waker: redis.waker,
          clock,
          log,
          classes: [...accounts].map(([class_, mine]) => ({ class: class_, accounts: mine })),
          lookEveryMs: LOOK_EVERY_MS,
        });
  const direct = directSource(authority, accounts);
  const source: Source =
    consumer === undefined ? direct : eitherSource(redisSource(consumer), direct, core.redisAvailable);
  const secrets = createSecretsInUse();
  const { kinds, containers, blocked, services } = openKinds(core, registry, secrets.scrub);
  const worker = createWorker({
    id: core.processId,
    name: core.processName,
    version: core.version,
    authority,
    heartbeatAuthority: core.heartbeatAuthority,
    registry,
    kinds,
    issueCallback: issueCallbacks(config, publicUrl),
    objects: core.objects,
    logs: core.logs,
    blocked,
    outputLimitBytes: config.PUNCTUAL_OUTPUT_LIMIT_BYTES,
    reader: { runsBetween: (tenantId, fromAt, toAt) => runsBetween(core.db, tenantId, fromAt, toAt) },
    secrets,
    source,
    accounts,
    claimLanes: 1,
    graceMs: config.PUNCTUAL_GRACE_MS,
  });
  for (const class_ of served) {
    consumer?.onReady(class_, () => worker.wake(class_));
    core.wakes.on("direct", () => {
      if (!core.redisAvailable()) worker.wake(class_);
    });
  }
  // First, so that it is stopped last.
  const strays = createStrayFaults(log, secrets.scrub);
  const keepers =
    containers === undefined
      ? []
      : [createLoop(createContainerKeeper({ authority, open: containers.open, adopt: worker.adopt }), core)];
  if (consumer === undefined) return [strays, ...services, objectsReady(core), worker, ...keepers];
  const reminder = createReminder({ authority, consumer, redis: { available: core.redisAvailable }, accounts });
  return [strays, ...services, objectsReady(core), consumer, createLoop(reminder, core), worker, ...keepers];
}

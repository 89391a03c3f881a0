import type { Socket } from "node:net";
import { type JobsOptions, Queue } from "bullmq";
import { AbstractConnector, Redis } from "ioredis";
import type { BullmqJob } from "../../domain/jobs/queue.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { BrokerConnection } from "./brokers.ts";
import type { BrokerAddress, Dial } from "./dial.ts";
import { busy, refused, unavailable, unknownDelivery } from "./failures.ts";
import type { QueueMessage } from "./message.ts";
import { RedisWire } from "./redis-wire.ts";

export type BullmqConnection = BrokerConnection & {
  /** Resolves once Redis has the job, this one or the one that it had under the same id. */
  add(job: BullmqJob, message: QueueMessage): Promise<void>;
};

/** Of queues with names of their own on one connection; more than that, and it is given up for a new one. */
const MOST_QUEUES = 100;

/** @throws JobFailure, or the error of the connection. */
export async function openBullmq(dial: Dial, address: BrokerAddress, signal: AbortSignal): Promise<BullmqConnection> {
  const wire = new RedisWire(await dial(address, signal));
  const client = new Redis({
    lazyConnect: true,
    Connector: connectorOf(wire),
    // The socket has been told before.
    noDelay: false,
    ...(address.user === "" ? {} : { username: address.user }),
    ...(address.password === "" ? {} : { password: address.password }),
    db: Number(address.room),
    // One connection has one life: what was not answered on it is for the run's next attempt, and for nobody else.
    retryStrategy: () => null,
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: null,
    enableOfflineQueue: false,
    disableClientInfo: true,
  });
  let fault: unknown;
  client.on("error", (error: unknown) => {
    fault ??= error;
  });
  const abort = () => client.disconnect();
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  await client.connect().catch((error: unknown) => {
    fault ??= error;
  });
  signal.removeEventListener("abort", abort);
  // Also where it is ready in spite of it: another database than the one that was asked for, say.
  if (fault !== undefined) {
    client.disconnect();
    throw ofAnswer(fault) ?? unavailable(fault);
  }
  return connectionOn(client, wire);
}

function connectorOf(wire: RedisWire) {
  return class extends AbstractConnector {
    constructor() {
      super(0);
    }

    override connect() {
      this.connecting = true;
      // Whatever is asked of it is what a wire can do.
      this.stream = wire as unknown as Socket;
      return Promise.resolve(this.stream);
    }
  };
}

function connectionOn(client: Redis, wire: RedisWire): BullmqConnection {
  const queues = new Map<string, Queue>();

  function queueOf({ queue: name, prefix }: BullmqJob): Queue {
    const key = JSON.stringify([prefix, name]);
    let queue = queues.get(key);
    if (queue === undefined) {
      // The queue is its owner's: its settings are left alone.
      queue = new Queue(name, { connection: client, prefix, skipMetasUpdate: true, skipVersionCheck: true });
      queue.on("error", () => undefined);
      queues.set(key, queue);
    }
    return queue;
  }

  return {
    get alive() {
      return client.status === "ready" && queues.size < MOST_QUEUES;
    },
    async add(job, { envelope, body }) {
      try {
        await queueOf(job).add(job.jobName, { punctual: envelope, payload: body }, {
          ...job.options,
          jobId: jobIdOf(job, envelope),
        } as JobsOptions);
      } catch (error) {
        // What ended the connection, rather than that it has ended.
        throw ofAnswer(error) ?? unknownDelivery(wire.errored ?? error);
      }
    },
    close: () => client.disconnect(),
  };
}

/**
 * A queue takes an id once, as long as it remembers it. Where a delivery is the whole run, its repetition is none. A run
 * that waits for a callback is another job with every attempt: what the earlier one was given opens nothing any more.
 */
function jobIdOf({ completion }: BullmqJob, { runId, attempt }: QueueMessage["envelope"]): string {
  return completion === "delivered" ? runId : `${runId}-${attempt}`;
}

const REFUSALS =
  /^(NOAUTH|WRONGPASS|NOPERM|DENIED|MOVED|ASK|WRONGTYPE|ERR (invalid DB index|DB index is out of range|AUTH|Client sent AUTH|invalid password|unknown command))/;

/** What Redis says in words of its own; undefined for everything else. */
function ofAnswer(error: unknown): unknown {
  if ((error as { name?: unknown }).name !== "ReplyError") return undefined;
  return REFUSALS.test(messageOf(error)) ? refused(error) : busy(error);
}

import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { Json, Payload } from "../../../src/domain/definition.ts";
import { type QueueJob, queueJobSchema } from "../../../src/domain/jobs/queue.ts";
import { type KnownSecrets, NO_SECRETS } from "../../../src/domain/secrets/known.ts";
import { executeHandler } from "../../../src/handlers/execute.ts";
import type { Outbound } from "../../../src/handlers/outbound/outbound.ts";
import type { HandlerOutcome } from "../../../src/handlers/outcome.ts";
import type { BrokersOptions } from "../../../src/handlers/queue/brokers.ts";
import { createQueueJobs } from "../../../src/handlers/queue/queue-job.ts";
import { type Clock, systemClock } from "../../../src/kernel/clock.ts";
import { outboundOf } from "../../support/outbound.ts";
import { testContext } from "../context.ts";

export const RUN = "run_01kct0v2mz8h3bmq5d0v5x2c9r";

export type Attempt = {
  payload?: Payload;
  run?: string;
  attempt?: number;
  tenantId?: string;
  secrets?: KnownSecrets;
  signal?: AbortSignal;
};

/** What a worker has for jobs of kind queue, with connections of its own. */
export type Bench = {
  attempt(job: Record<string, unknown>, attempt?: Attempt): Promise<HandlerOutcome>;
  /** How many connections there are, and how many were dialled so far. */
  readonly connections: number;
  readonly dialled: number;
  close(): Promise<void>;
};

export function openBench(
  options: { clock?: Clock; brokers?: Omit<BrokersOptions, "clock">; outbound?: Pick<Outbound, "dial"> } = {},
): Bench {
  const { clock = systemClock, brokers = {}, outbound = outboundOf() } = options;
  let dialled = 0;
  const queue = createQueueJobs({
    outbound: {
      dial: (...target) => {
        dialled++;
        return outbound.dial(...target);
      },
    },
    clock,
    brokers,
  });
  return {
    attempt(job, { payload = {}, run = RUN, attempt = 1, tenantId, secrets = NO_SECRETS, signal } = {}) {
      const ctx = testContext(signal === undefined ? {} : { signal });
      Object.assign(ctx.run, {
        id: run,
        attempt,
        fence: BigInt(attempt),
        ...(tenantId === undefined ? {} : { tenantId }),
      });
      const parsed: QueueJob = queueJobSchema.parse({ kind: "queue", timeoutMs: 10_000, ...job });
      return executeHandler({ queue: queue.run }, parsed, ctx, payload, secrets);
    },
    get connections() {
      return queue.connections;
    },
    get dialled() {
      return dialled;
    },
    close: () => queue.service.stop(),
  };
}

/** A URL whose password is in the payload. */
export function withoutPassword(url: string): { url: string; payload: { [key: string]: Json } } {
  const parsed = new URL(url);
  const [, protocol, user, host] = /^([a-z]+:\/\/)([^:@]*):[^@]*@(.*)$/.exec(url)!;
  return {
    url: `${protocol}${user}:{{payload.broker.password}}@${host}`,
    payload: { broker: { password: decodeURIComponent(parsed.password) } },
  };
}

/** In front of a broker: what it answers after `swallow` gets lost, and at `cut` so does the connection. */
export type Middleman = {
  port: number;
  connections: number;
  swallow(until: string): Promise<void>;
  close(): Promise<void>;
};

export async function standBetween(port: number): Promise<Middleman> {
  const sockets = new Set<Socket>();
  let awaited: { text: string; heard: () => void } | undefined;
  const server = createServer((near) => {
    middleman.connections++;
    const far = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("error", () => undefined).on("close", () => to.end());
      from.on("data", (bytes: Buffer) => {
        if (from === near || awaited === undefined) to.write(bytes);
        if (from !== near || awaited === undefined || !bytes.includes(awaited.text)) return;
        awaited.heard();
        // What the near side said is on its way; what the far side says of it is not.
        far.end();
        near.destroy();
      });
    }
  });
  const middleman: Middleman = {
    port: 0,
    connections: 0,
    swallow: (text) =>
      new Promise((resolve) => {
        awaited = {
          text,
          heard: () => {
            awaited = undefined;
            resolve();
          },
        };
      }),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  middleman.port = (server.address() as AddressInfo).port;
  return middleman;
}

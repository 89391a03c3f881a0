import type { Payload } from "../../domain/definition.ts";
import { fillCredential, readBrokerUrl } from "../../domain/jobs/broker-url.ts";
import type { QueueJob } from "../../domain/jobs/queue.ts";
import type { JobFacts } from "../../domain/jobs/template.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Service } from "../../kernel/service.ts";
import type { JobContext, JobResult } from "../context.ts";
import { filledIn, jobFactsOf } from "../job-facts.ts";
import type { JobKindRunner } from "../kinds.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { permanentFailure } from "../outcome.ts";
import { type AmqpConnection, openAmqp } from "./amqp.ts";
import { type BrokersOptions, createBrokers } from "./brokers.ts";
import { type BullmqConnection, openBullmq } from "./bullmq.ts";
import { type BrokerAddress, dialBrokers } from "./dial.ts";
import { messageOf } from "./message.ts";

export type QueueJobs = {
  run: JobKindRunner<"queue">;
  /** Holds the connections: stopped after the worker, it closes them. */
  service: Service;
  /** How many there are. */
  readonly connections: number;
};

/** Runs that are handed to a broker of the tenant's own: one message each, and the run ends with it or with its callback. */
export function createQueueJobs(options: {
  outbound: Pick<Outbound, "dial">;
  clock: Clock;
  brokers?: Omit<BrokersOptions, "clock">;
}): QueueJobs {
  const { clock } = options;
  const dial = dialBrokers(options.outbound, clock);
  const amqp = createBrokers<AmqpConnection>({ clock, ...options.brokers });
  const bullmq = createBrokers<BullmqConnection>({ clock, ...options.brokers });

  async function run(ctx: JobContext, job: QueueJob, payload: Payload): Promise<JobResult> {
    const facts = jobFactsOf(ctx, payload);
    const address = addressOf(ctx, job, facts);
    const untilAt = Math.min(
      ctx.deadlineAt,
      clock.now() + job.timeoutMs + (job.callbackWithinMs ?? Number.POSITIVE_INFINITY),
    );
    const callback = job.completion === "callback" ? { pass: ctx.callback(untilAt), untilAt } : undefined;
    const message = messageOf(job, facts, callback);
    const shared = { key: JSON.stringify(address), timeoutMs: job.timeoutMs, signal: ctx.signal };
    if (job.broker === "amqp") {
      await amqp.use({
        ...shared,
        open: (signal) => openAmqp(dial, address, signal),
        work: (connection) => connection.publish(job, message, clock.now()),
      });
    } else {
      await bullmq.use({
        ...shared,
        open: (signal) => openBullmq(dial, address, signal),
        work: (connection) => connection.add(job, message),
      });
    }
    if (callback === undefined) return undefined;
    return { detached: job.callbackWithinMs === undefined ? {} : { callbackWithinMs: job.callbackWithinMs } };
  }

  return {
    run,
    service: {
      name: "queue-jobs",
      start: async () => undefined,
      async stop() {
        amqp.close();
        bullmq.close();
      },
    },
    get connections() {
      return amqp.open + bullmq.open;
    },
  };
}

const credentialTooLong = (why: string) => permanentFailure("broker-credentials-too-long", why);

/** @throws JobFailure `broker-credentials-missing`, `broker-credentials-too-long` */
function addressOf(ctx: JobContext, job: QueueJob, facts: JobFacts): BrokerAddress {
  // Read before it was stored.
  const url = readBrokerUrl(job.url)!;
  const fill = (template: string, what: string) => {
    const found = filledIn(credentialTooLong, () => fillCredential(template, facts, `the URL's ${what}`));
    if (found !== "" || template === "") return found;
    throw permanentFailure("broker-credentials-missing", `the payload has no ${what} for the broker: ${template}`);
  };
  return {
    tenantId: ctx.run.tenantId,
    tls: url.tls,
    host: url.host,
    port: url.port,
    user: fill(url.user, "user"),
    password: fill(url.password, "password"),
    room: job.broker === "amqp" ? job.vhost : url.path,
  };
}

import type { AMQPChannel } from "@cloudamqp/amqp-client";
import type { AmqpJob } from "../../domain/jobs/queue.ts";
import type { Instant } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import { permanentFailure } from "../outcome.ts";
import { AmqpSocket } from "./amqp-socket.ts";
import type { BrokerConnection } from "./brokers.ts";
import type { BrokerAddress, Dial } from "./dial.ts";
import { busy, refused, unavailable, unknownDelivery } from "./failures.ts";
import type { Envelope, QueueMessage } from "./message.ts";

export type AmqpConnection = BrokerConnection & {
  /** Resolves once the broker has confirmed that it has the message. */
  publish(job: AmqpJob, message: QueueMessage, nowAt: Instant): Promise<void>;
};

/** More would have to be opened for another place each: the connection is given up for a new one. */
const MOST_CHANNELS = 100;

/** @throws JobFailure, or the error of the connection. */
export async function openAmqp(dial: Dial, address: BrokerAddress, signal: AbortSignal): Promise<AmqpConnection> {
  const socket = await dial(address, signal);
  const client = new AmqpSocket(socket, address);
  const abort = () => socket.destroy();
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    await client.connect();
  } catch (error) {
    throw isRefusal(error) ? refused(error) : unavailable(error);
  }
  signal.removeEventListener("abort", abort);
  return connectionOn(client);
}

function connectionOn(client: AmqpSocket): AmqpConnection {
  /**
   * One for every place that is published to: a broker closes the channel on which it was asked for what is not there, and
   * with it whatever else was under way on it.
   */
  const channels = new Map<string, Promise<AMQPChannel>>();
  const returned = new Map<string, (why: string) => void>();

  function channelTo(job: AmqpJob): Promise<AMQPChannel> {
    const place = JSON.stringify([job.exchange, job.routingKey]);
    let channel = channels.get(place);
    if (channel !== undefined) return channel;
    channel = openChannel(place);
    channels.set(place, channel);
    channel.catch(() => channels.delete(place));
    return channel;
  }

  async function openChannel(place: string): Promise<AMQPChannel> {
    const channel = await client.channel();
    channel.onerror = () => channels.delete(place);
    channel.onReturn = ({ replyCode, replyText, properties }) =>
      returned.get(keyOf(properties.messageId, properties.headers?.["x-punctual-fence"]))?.(
        `${replyText} (${replyCode})`,
      );
    await channel.confirmSelect();
    return channel;
  }

  return {
    get alive() {
      return client.alive && channels.size < MOST_CHANNELS;
    },
    async publish(job, message, nowAt) {
      if (client.blocked !== undefined) throw busy(new Error(client.blocked));
      const channel = await channelTo(job).catch((error: unknown) => {
        throw unavailable(error);
      });
      const { runId, fence } = message.envelope;
      const key = keyOf(runId, fence);
      let unroutable: string | undefined;
      returned.set(key, (why) => {
        unroutable = why;
      });
      try {
        await channel.basicPublish(
          job.exchange,
          job.routingKey,
          JSON.stringify(message.body),
          {
            contentType: "application/json",
            deliveryMode: job.persistent ? 2 : 1,
            messageId: runId,
            timestamp: new Date(nowAt),
            appId: "punctual",
            headers: { ...message.headers, ...headersOf(message.envelope) },
          },
          job.mandatory,
        );
      } catch (error) {
        throw ofPublishing(error);
      } finally {
        returned.delete(key);
      }
      // A message that comes back is told before it is confirmed.
      if (unroutable === undefined) return;
      const where = `exchange "${job.exchange}" and routing key "${job.routingKey}"`;
      throw permanentFailure("queue-unroutable", `no queue takes messages with ${where}: ${unroutable}`);
    },
    close: () => client.hangUp(),
  };
}

const keyOf = (messageId: unknown, fence: unknown) => `${String(messageId)}/${String(fence)}`;

/** docs/jobs.md lists them. */
function headersOf(envelope: Envelope): Record<string, string> {
  const { callback } = envelope;
  const values = {
    "run-id": envelope.runId,
    "schedule-id": envelope.scheduleId ?? undefined,
    "scheduled-at": envelope.scheduledAt,
    "due-at": envelope.dueAt,
    attempt: String(envelope.attempt),
    fence: envelope.fence,
    "idempotency-key": envelope.idempotencyKey,
    "callback-url": callback?.url,
    "callback-token": callback?.token,
    "callback-until": callback?.until,
  };
  return Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[`x-punctual-${name}`, value]])),
  );
}

/** The reply code of who closed a channel or a connection; the client puts it behind the reason. */
function codeIn(error: unknown): number | undefined {
  const [, code] = /^(?:channel \d+|connection) closed: .*\((\d{3})\)$/s.exec(messageOf(error)) ?? [];
  return code === undefined ? undefined : Number(code);
}

function ofPublishing(error: unknown): unknown {
  const message = messageOf(error);
  // Nothing has left: method and headers go in one frame, and did not fit.
  if (error instanceof RangeError) return permanentFailure("message-too-large", "the headers do not fit in one frame");
  if (message === "Message rejected") return busy(new Error("it has answered with a negative confirmation"));
  if (message.startsWith("Connection blocked by server")) return busy(error);
  if (codeIn(error) === 404) return permanentFailure("exchange-missing", message, { cause: error });
  return isRefusal(error) ? refused(error) : unknownDelivery(error);
}

/** Closed for what was asked: there is no such thing, or it is not allowed. Everything else is the broker's own trouble, or its end. */
const REFUSALS: ReadonlySet<number | undefined> = new Set([311, 402, 403, 404, 406, 530]);

const isRefusal = (error: unknown) => REFUSALS.has(codeIn(error)) && !/limit \(\d+\) is reached/.test(messageOf(error));

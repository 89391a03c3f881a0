import type { Json } from "../../domain/definition.ts";
import type { AmqpJob, QueueJob } from "../../domain/jobs/queue.ts";
import { fillJson, fillText, type JobFacts, roomFor } from "../../domain/jobs/template.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { CallbackPass } from "../callbacks.ts";
import { filledIn, showInstant } from "../job-facts.ts";
import { permanentFailure } from "../outcome.ts";

/** What a consumer is told of the run beside its message. */
export type Envelope = {
  runId: string;
  scheduleId: string | null;
  scheduledAt: string;
  dueAt: string;
  attempt: number;
  fence: string;
  /** The same for every delivery of the run: work done under it once need not be done again. */
  idempotencyKey: string;
  callback?: { url: string; token: string; until: string };
};

/** `headers` are those of the job, for a broker that has such. */
export type QueueMessage = { envelope: Envelope; body: Json; headers: Readonly<AmqpJob["headers"]> };

const LARGEST_BYTES = 2 ** 20;
const LARGEST_HEADERS_BYTES = 2 ** 15;

const tooLarge = (why: string) => permanentFailure("message-too-large", why);

/** @throws JobFailure `message-too-large` */
export function messageOf(
  job: QueueJob,
  facts: JobFacts,
  callback: { pass: CallbackPass; untilAt: Instant } | undefined,
): QueueMessage {
  const { id, ...run } = facts.run;
  const body = filledIn(tooLarge, () => fillJson(job.message, facts, roomFor(LARGEST_BYTES)("message")));
  const size = Buffer.byteLength(JSON.stringify(body));
  if (size > LARGEST_BYTES) {
    throw tooLarge(`the message has ${size} bytes; allowed: ${LARGEST_BYTES}`);
  }
  const headers = job.broker === "amqp" ? filledIn(tooLarge, () => headersOf(job, facts)) : {};
  const envelope: Envelope = { runId: id, ...run, idempotencyKey: id };
  if (callback === undefined) return { envelope, body, headers };
  const passed = { ...callback.pass, until: showInstant(callback.untilAt) };
  return { envelope: { ...envelope, callback: passed }, body, headers };
}

function headersOf(job: AmqpJob, facts: JobFacts): AmqpJob["headers"] {
  const room = roomFor(LARGEST_HEADERS_BYTES, "all headers together");
  return Object.fromEntries(
    Object.entries(job.headers).map(([name, value]) => [
      name,
      typeof value === "string" ? fillText(value, facts, room(`headers.${name}`)) : value,
    ]),
  );
}

import { z } from "zod";
import type { Json } from "../definition.ts";
import { brokerUrlFault, withoutUser } from "./broker-url.ts";
import { FEW_PLACEHOLDERS, hasFewPlaceholders, JOB_PLACEHOLDERS, unknownJobPlaceholders } from "./template.ts";

/** A run that is handed to the tenant's own broker, as one message: a job of a BullMQ queue, or a message to an AMQP 0-9-1 exchange. */

const ms = (min: number, max: number) => z.int().min(min).max(max);
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LARGEST_TEMPLATE = 16_384;
const INT_32 = 2 ** 31 - 1;

const brokerUrl = (allowed: Parameters<typeof brokerUrlFault>[1]) =>
  z
    .string()
    .superRefine((text, context) => {
      const fault = brokerUrlFault(text, allowed);
      // What was found is said without what may be secret in it.
      if (fault !== undefined) context.addIssue({ code: "custom", message: fault, input: withoutUser(text) });
    })
    .describe(
      `Where the broker is: ${allowed.protocols.join(" or ")}. User and password may be placeholders such as {{payload.password}}; a password must be`,
    );

const placeholders = JOB_PLACEHOLDERS.map((name) => `{{${name}}}`).join(", ");
const onlyKnown = (text: string) => unknownJobPlaceholders(text).length === 0;
const onlyKnownWords = `placeholders are ${placeholders}`;

function messageFault(value: unknown): string | undefined {
  const text = JSON.stringify(value);
  if (text === undefined) return "must be a JSON value";
  if (text.length > LARGEST_TEMPLATE) return `at most ${LARGEST_TEMPLATE} characters of JSON`;
  return onlyKnown(text) ? undefined : onlyKnownWords;
}

// One check: of a chain of them the API's document can be made of none.
const messageSchema = z
  .custom<Json>((value) => messageFault(value) === undefined, { error: ({ input }) => messageFault(input) })
  .meta({
    description: `What the consumer gets, any JSON: texts may have placeholders, ${placeholders}. The payload by default`,
    override: { type: ["object", "array", "string", "number", "boolean", "null"] },
  })
  .default("{{payload}}");

const shared = {
  kind: z.literal("queue"),
  message: messageSchema,
  completion: z
    .enum(["delivered", "callback"])
    .default("delivered")
    .describe(
      "When the run has succeeded: once the broker has the message, or once the consumer says so with the callback that the message carries",
    ),
  callbackWithinMs: ms(1000, DAY_MS)
    .optional()
    .describe("How long a callback is waited for; until the attempt's deadline if nothing is said"),
  timeoutMs: ms(1000, MINUTE_MS).default(10_000).describe("How long the broker may take, connecting included"),
};

const kept = z
  .union([
    z.boolean(),
    z.strictObject({ age: z.int().min(0).max(INT_32).optional(), count: z.int().min(0).max(INT_32).optional() }),
  ])
  .optional();

/** zod keeps it with the object, so each of the two needs it. */
const callbackIsWaitedFor = (job: { completion: string; callbackWithinMs?: number | undefined }) =>
  job.callbackWithinMs === undefined || job.completion === "callback";
const ONLY_CALLBACKS = { path: ["callbackWithinMs"], error: "only with completion callback" };

const name = (max: number) => z.string().min(1).max(max);

const bullmqSchema = z
  .strictObject({
    ...shared,
    broker: z.literal("bullmq"),
    url: brokerUrl({
      protocols: ["redis", "rediss"],
      path: /^(\d{1,4})?$/,
      pathWords: "nothing but the number of a database",
    }),
    queue: name(200)
      .regex(/^[^:]+$/, "must not have a colon")
      .describe("The queue's name"),
    prefix: name(100).default("bull").describe("The prefix of the queue's keys"),
    jobName: name(200).default("run").describe("The name that the job has in the queue"),
    options: z
      .strictObject({
        priority: z.int().min(0).max(2_097_152).optional(),
        lifo: z.boolean().optional(),
        delay: ms(0, 30 * DAY_MS).optional(),
        attempts: z.int().min(1).max(1000).optional(),
        backoff: z.strictObject({ type: z.enum(["fixed", "exponential"]), delay: ms(0, 30 * DAY_MS) }).optional(),
        removeOnComplete: kept,
        removeOnFail: kept,
      })
      .default({})
      .describe(
        "As BullMQ knows them. A job that is removed is forgotten: a second delivery of its run is a second job then",
      ),
  })
  .refine(callbackIsWaitedFor, ONLY_CALLBACKS)
  .refine(hasFewPlaceholders, FEW_PLACEHOLDERS);

/** What AMQP calls a short string. */
const shortText = (min: number) =>
  z
    .string()
    .min(min)
    .refine((text) => Buffer.byteLength(text) <= 255, "must have at most 255 bytes");

const OWN_HEADERS = /^x-punctual-/i;

const amqpSchema = z
  .strictObject({
    ...shared,
    broker: z.literal("amqp"),
    url: brokerUrl({
      protocols: ["amqp", "amqps"],
      path: /^$/,
      pathWords: "nothing (a virtual host is named as vhost)",
    }),
    vhost: shortText(1).default("/"),
    exchange: shortText(0).describe(
      "An exchange that exists; an empty name is the default exchange, which routes to queues by their names",
    ),
    routingKey: shortText(0).default(""),
    persistent: z.boolean().default(true).describe("Whether the message outlives the broker, in queues that do"),
    mandatory: z
      .boolean()
      .default(true)
      .describe("A message that no queue takes is a failure (queue-unroutable), not a success"),
    headers: z
      .record(
        z
          .string()
          .regex(/^[A-Za-z0-9._-]{1,100}$/, "a header's name has 1 to 100 letters, digits, dots, _ or -")
          .refine((text) => !OWN_HEADERS.test(text), "a header that is set by Punctual"),
        z.union([
          z.string().max(1000, { abort: true }).refine(onlyKnown, onlyKnownWords),
          z.boolean(),
          z.int().min(-INT_32).max(INT_32),
        ]),
      )
      .refine((headers) => Object.keys(headers).length <= 20, "at most 20 headers")
      .default({})
      .describe("Headers beside those of Punctual; texts may have placeholders"),
  })
  .refine(callbackIsWaitedFor, ONLY_CALLBACKS)
  .refine(hasFewPlaceholders, FEW_PLACEHOLDERS);

export const queueJobSchema = z.discriminatedUnion("broker", [bullmqSchema, amqpSchema]);
export type QueueJob = z.infer<typeof queueJobSchema>;
export type BullmqJob = z.infer<typeof bullmqSchema>;
export type AmqpJob = z.infer<typeof amqpSchema>;

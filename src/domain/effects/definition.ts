import { z } from "zod";
import type { Instant } from "../../kernel/clock.ts";
import { effectHeadersSchema } from "./headers.ts";
import { ON_UNCERTAIN } from "./states.ts";
import { EMAIL_NAME, PLACEHOLDER_NAMES, placeholderText } from "./template.ts";

/** What is to be done outside once a run's result is accepted. Part of a revision, or of an ad hoc run. */

const ms = (min: number, max: number) => z.int().min(min).max(max);
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;

/** Longest answer a webhook is waited for; a sender's lease has room for it. */
const LONGEST_WEBHOOK_MS = MINUTE_MS;

const address = z.email("must be an email address, such as ops@example.com").max(254);
const addresses = z.array(address).max(50);

const shared = {
  name: z
    .string()
    .regex(EMAIL_NAME, "a name has 1 to 40 lower case letters, digits or -, and begins with no -")
    .describe("Unique in its schedule; part of the action id, which never changes"),
  onUncertain: z
    .enum(ON_UNCERTAIN)
    .default("hold")
    .describe(
      "When nobody knows whether it happened: `hold` it for a person, `resend` it (it may happen twice), or `drop` it",
    ),
  retry: z
    .strictObject({
      maxAttempts: z.int().min(1).max(100).default(20),
      maxElapsedMs: ms(1000, 30 * DAY_MS).default(DAY_MS),
      baseMs: ms(1, DAY_MS).default(1000),
      capMs: ms(1, DAY_MS).default(60 * MINUTE_MS),
    })
    .prefault({})
    .describe("What was refused for the moment is tried again with exponential back-off and full jitter"),
};

const emailSchema = z
  .strictObject({
    ...shared,
    kind: z.literal("email"),
    to: addresses.min(1),
    cc: addresses.default([]),
    template: z
      .string()
      .regex(EMAIL_NAME, "is the name of an email template")
      .optional()
      .describe("Takes its words from this one of the tenant's email templates, as it is when the result is accepted"),
    subject: placeholderText(500)
      .refine((text) => !/[\r\n]/.test(text), "must be one line")
      .optional()
      .describe(
        `Default: the template's, or a built-in one. May use ${PLACEHOLDER_NAMES.map((name) => `{{${name}}}`).join(", ")}`,
      ),
    text: placeholderText(20_000)
      .optional()
      .describe("In place of a template: plain text. Neither: built-in words, as text and HTML"),
    result: z
      .enum(["link", "attach"])
      .default("link")
      .describe("`attach` sends results of up to 10 MB along; larger ones, and `link`, are found at {{result.url}}"),
  })
  .refine(({ template, text }) => template === undefined || text === undefined, {
    path: ["text"],
    message: "stands beside template: one of the two",
  });

const webhookSchema = z.strictObject({
  ...shared,
  kind: z.literal("webhook"),
  url: z
    .url({ protocol: /^https?$/, error: "must be an http or https URL" })
    .max(2000)
    .refine((text) => {
      const url = URL.parse(text);
      return url === null || (url.username === "" && url.password === "");
    }, "must not carry a user or a password"),
  headers: effectHeadersSchema
    .default({})
    .describe('Texts; a secret is wrapped, `{"Authorization": {"$secret": "Bearer …"}}`, and never shown again'),
  timeoutMs: ms(1000, LONGEST_WEBHOOK_MS).default(10_000).describe("How long the answer is waited for"),
  idempotencyWindowMs: ms(0, 30 * DAY_MS)
    .default(DAY_MS)
    .describe(
      "How long the receiver knows an Idempotency-Key again: so long an unknown outcome is tried again. 0: it knows none",
    ),
});

export const effectSchema = z.discriminatedUnion("kind", [emailSchema, webhookSchema]);
export type Effect = z.infer<typeof effectSchema>;
export type EmailEffect = z.infer<typeof emailSchema>;
export type WebhookEffect = z.infer<typeof webhookSchema>;

export const effectsSchema = z
  .array(effectSchema)
  .max(10)
  .refine(
    (effects) => new Set(effects.map((one) => one.name)).size === effects.length,
    "must have a name of its own each",
  )
  .describe("What is sent when a run has succeeded, each once: emails and webhooks");

/** So long after its first attempt an effect may be tried again under its key without happening twice. */
export function idempotencyWindowMs(effect: Effect): number {
  // A mail server may well take two messages with one Message-ID.
  return effect.kind === "email" ? 0 : effect.idempotencyWindowMs;
}

/**
 * Until when (epoch s) a link works that an effect speaks of from now on: for a week after the last attempt that its
 * retries or its receiver's memory may bring.
 */
export function linkExpiryOf(effect: Effect, nowAt: Instant): number {
  const longestMs = Math.max(effect.retry.maxElapsedMs, idempotencyWindowMs(effect));
  return Math.ceil((nowAt + longestMs + 7 * DAY_MS) / 1000);
}

import { createSigningKeys } from "../authority/secrets/signing-keys.ts";
import { EFFECT_KINDS, type EffectKind } from "../domain/effects/states.ts";
import { createEmailAdapter } from "../handlers/effects/email.ts";
import { createEventPoster, type EventPoster } from "../handlers/effects/event-webhook.ts";
import type { EffectAdapter } from "../handlers/effects/port.ts";
import type { SmtpServer } from "../handlers/effects/smtp.ts";
import { createWebhookAdapter } from "../handlers/effects/webhook.ts";
import type { Config } from "./config.ts";
import type { Core } from "./core.ts";

/** The kinds of effects this installation can send: email only where a server for it is named. */
export function effectKindsOf(config: Config): EffectKind[] {
  return EFFECT_KINDS.filter((kind) => kind !== "email" || config.PUNCTUAL_SMTP_URL !== undefined);
}

export function openEffectAdapters(core: Core): EffectAdapter[] {
  const { config } = core;
  const webhooks = createWebhookAdapter(posting(core));
  if (config.PUNCTUAL_SMTP_URL === undefined) return [webhooks];
  const email = createEmailAdapter({
    server: smtpServerOf(config.PUNCTUAL_SMTP_URL, config.PUNCTUAL_SMTP_TLS),
    from: config.PUNCTUAL_SMTP_FROM!,
    concurrency: config.PUNCTUAL_SMTP_CONNECTIONS,
  });
  return [webhooks, email];
}

export function openEventPoster(core: Core): EventPoster {
  return createEventPoster(posting(core));
}

const posting = (core: Core) => ({
  outbound: core.outbound,
  keys: createSigningKeys(core.authority),
  concurrency: core.config.PUNCTUAL_WEBHOOK_CONCURRENCY,
  userAgent: `Punctual/${core.version}`,
  clock: core.clock,
});

const SILENCE_MS = 60_000;

function smtpServerOf(text: string, startTls: SmtpServer["startTls"]): SmtpServer {
  const url = new URL(text);
  const secure = url.protocol === "smtps:";
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? (secure ? 465 : 587) : Number(url.port),
    secure,
    startTls,
    auth:
      url.username === ""
        ? undefined
        : { user: decodeURIComponent(url.username), pass: decodeURIComponent(url.password) },
    silenceMs: SILENCE_MS,
  };
}

import { EFFECT_KINDS, type EffectKind } from "../domain/effects/states.ts";
import { createEmailAdapter } from "../handlers/effects/email.ts";
import type { EffectAdapter } from "../handlers/effects/port.ts";
import type { SmtpServer } from "../handlers/effects/smtp.ts";
import { createWebhookAdapter } from "../handlers/effects/webhook.ts";
import { createOutboundAgent } from "../handlers/outbound/agent.ts";
import { createOutboundGuard } from "../handlers/outbound/guard.ts";
import type { Config } from "./config.ts";
import type { Core } from "./core.ts";

/** The kinds of effects this installation can send: email only where a server for it is named. */
export function effectKindsOf(config: Config): EffectKind[] {
  return EFFECT_KINDS.filter((kind) => kind !== "email" || config.PUNCTUAL_SMTP_URL !== undefined);
}

export function openEffectAdapters(core: Core): EffectAdapter[] {
  const { config, clock } = core;
  const agent = createOutboundAgent({
    guard: createOutboundGuard(config.PUNCTUAL_OUTBOUND_ALLOW ?? []),
    connectTimeoutMs: 10_000,
  });
  const webhooks = createWebhookAdapter({
    agent,
    concurrency: config.PUNCTUAL_WEBHOOK_CONCURRENCY,
    userAgent: `Punctual/${core.version}`,
    now: clock.now,
  });
  if (config.PUNCTUAL_SMTP_URL === undefined) return [webhooks];
  const email = createEmailAdapter({
    server: smtpServerOf(config.PUNCTUAL_SMTP_URL, config.PUNCTUAL_SMTP_TLS),
    from: config.PUNCTUAL_SMTP_FROM!,
    concurrency: config.PUNCTUAL_SMTP_CONNECTIONS,
  });
  return [webhooks, email];
}

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

import { type Dispatcher, errors, request } from "undici";
import type { WebhookEffect } from "../../domain/effects/definition.ts";
import type { SendReport } from "../../domain/effects/settlement.ts";
import { messageOf } from "../../kernel/errors.ts";
import { neverLeft } from "../outbound/agent.ts";
import { ForbiddenAddress } from "../outbound/guard.ts";
import type { EffectAdapter, OutgoingEffect } from "./port.ts";

/** Of an answer no more is read than a person wants to see. */
const ANSWER_LIMIT = 500;
const BODY_TIMEOUT_MS = 5_000;

/**
 * Posts the run as JSON. The action id goes along as Idempotency-Key: a receiver that keeps keys does once what it is
 * told twice.
 */
export function createWebhookAdapter(options: {
  agent: Dispatcher;
  concurrency: number;
  userAgent: string;
  now: () => number;
}): EffectAdapter {
  const { agent, concurrency, userAgent, now } = options;
  return {
    kind: "webhook",
    concurrency,
    async send(outgoing, signal) {
      const effect = outgoing.effect as WebhookEffect;
      try {
        const answer = await request(effect.url, {
          dispatcher: agent,
          method: "POST",
          headers: {
            ...effect.headers,
            "content-type": "application/json",
            "user-agent": userAgent,
            "idempotency-key": outgoing.actionId,
          },
          body: JSON.stringify(bodyOf(outgoing)),
          signal,
          headersTimeout: effect.timeoutMs,
          bodyTimeout: BODY_TIMEOUT_MS,
        });
        // The status has been said: what may still happen to the body changes nothing.
        const text = await beginningOf(answer.body).catch(() => "");
        return reportOf(answer, text, effect.idempotencyWindowMs > 0, now());
      } catch (error) {
        return ofFailure(error);
      }
    },
    close: () => agent.close(),
  };
}

/** What receivers get; docs/api.md shows it. */
function bodyOf({ actionId, facts, resultUrl }: OutgoingEffect) {
  const { schedule, job, run, result } = facts;
  return {
    type: "run.succeeded",
    actionId,
    schedule,
    job,
    run: {
      id: run.id,
      scheduledAt: new Date(Math.floor(run.scheduledAt)).toISOString(),
      finishedAt: new Date(Math.floor(run.finishedAt)).toISOString(),
      attempt: run.attempt,
    },
    result:
      result === null
        ? null
        : { url: resultUrl, sha256: result.sha256, size: result.size, mediaType: result.mediaType },
  };
}

async function beginningOf(body: Dispatcher.ResponseData["body"]): Promise<string> {
  let text = "";
  // Leaving the loop destroys the rest.
  for await (const chunk of body) {
    text += String(chunk);
    if (text.length >= ANSWER_LIMIT) break;
  }
  return text.slice(0, ANSWER_LIMIT);
}

/**
 * What an answer tells; docs/api.md has the table. Redirects are not followed: they would lead where nobody looked.
 * A 5xx is never a no: a gateway does not know what the receiver did, nor the receiver itself what it did before it broke
 * off, and the number does not say which of them answers.
 */
function reportOf(
  { statusCode, headers }: Pick<Dispatcher.ResponseData, "statusCode" | "headers">,
  text: string,
  keepsKeys: boolean,
  nowMs: number,
): SendReport {
  if (statusCode >= 200 && statusCode < 300) {
    return { kind: "sent", externalId: headerOf(headers["x-request-id"]), message: null };
  }
  const message = `the receiver answered ${statusCode}${text === "" ? "" : `: ${text}`}`;
  const retryAfterMs = retryAfterOf(headerOf(headers["retry-after"]), nowMs);
  if (statusCode >= 500) return { kind: "unknown", message, retryAfterMs };
  const transient = statusCode === 408 || statusCode === 425 || statusCode === 429 || (statusCode === 409 && keepsKeys);
  return { kind: "refused", transient, message, retryAfterMs: transient ? retryAfterMs : undefined };
}

const headerOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value) ?? null;

/** Seconds, or an HTTP date. */
function retryAfterOf(value: string | null, nowMs: number): number | undefined {
  if (value === null) return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}

function ofFailure(error: unknown): SendReport {
  const message = describe(error);
  if (neverLeft(error)) return { kind: "refused", transient: !(error instanceof ForbiddenAddress), message };
  if (error instanceof errors.InvalidArgumentError) return { kind: "refused", transient: false, message };
  return { kind: "unknown", message };
}

function describe(error: unknown): string {
  const { code } = error as { code?: unknown };
  const text = messageOf(error) || (error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : "");
  return typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
}

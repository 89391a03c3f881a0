import type { WebhookEffect } from "../../domain/effects/definition.ts";
import type { SendReport } from "../../domain/effects/settlement.ts";
import type { EffectAdapter, OutgoingEffect } from "./port.ts";
import { type Posted, type PostOptions, post } from "./post.ts";

/**
 * Posts the run as JSON. The action id goes along as Idempotency-Key: a receiver that keeps keys does once what it is
 * told twice.
 */
export function createWebhookAdapter(options: PostOptions & { concurrency: number }): EffectAdapter {
  return {
    kind: "webhook",
    concurrency: options.concurrency,
    async send(outgoing, signal) {
      const { url, timeoutMs, idempotencyWindowMs } = outgoing.effect as WebhookEffect;
      const { tenantId, actionId, headers, secrets } = outgoing;
      const posted = await post(
        options,
        {
          tenantId,
          url,
          headers: { ...headers, "idempotency-key": actionId },
          body: JSON.stringify(bodyOf(outgoing)),
          messageId: actionId,
          timeoutMs,
          secrets,
        },
        signal,
      );
      return reportOf(posted, idempotencyWindowMs > 0);
    },
    // The ways out are the process's own.
    close: async () => undefined,
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

/**
 * What an answer tells; docs/api.md has the table. A 5xx is never a no: a gateway does not know what the receiver did,
 * nor the receiver itself what it did before it broke off, and the number does not say which of them answers.
 */
function reportOf(posted: Posted, keepsKeys: boolean): SendReport {
  switch (posted.kind) {
    case "unsigned":
      return { kind: "refused", transient: true, message: posted.message };
    case "no-way":
      return { kind: "not-sent", message: posted.message };
    case "never-left":
      return { kind: "refused", transient: !posted.forever, message: posted.message };
    case "unanswered":
      return { kind: "unknown", message: posted.message };
    case "answered": {
      const { status, text, requestId, retryAfterMs } = posted;
      if (status >= 200 && status < 300) return { kind: "sent", externalId: requestId, message: null };
      const message = `the receiver answered ${status}${text === "" ? "" : `: ${text}`}`;
      if (status >= 500) return { kind: "unknown", message, retryAfterMs };
      const transient = status === 408 || status === 425 || status === 429 || (status === 409 && keepsKeys);
      return { kind: "refused", transient, message, retryAfterMs: transient ? retryAfterMs : undefined };
    }
  }
}

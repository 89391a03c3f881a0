import { NO_SECRETS } from "../../domain/secrets/known.ts";
import type { DeliveryReport } from "../../domain/webhooks/settlement.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type PostOptions, post } from "./post.ts";

export type OutgoingEvent = { tenantId: Uuid; url: string; eventId: string; body: string };

/** Posts an event to an endpoint. */
export type EventPoster = {
  /** How many are sent side by side by one process. */
  readonly concurrency: number;
  send(event: OutgoingEvent, signal: AbortSignal): Promise<DeliveryReport>;
};

const TIMEOUT_MS = 15_000;

/** A receiver of events may get one twice, so whatever is no 2xx is tried again, but for what can never get there. */
export function createEventPoster(options: PostOptions & { concurrency: number }): EventPoster {
  return {
    concurrency: options.concurrency,
    async send({ tenantId, url, eventId, body }, signal) {
      // Also where nothing is signed: it is how a receiver tells a repetition.
      const headers = { "webhook-id": eventId };
      const one = { tenantId, url, headers, body, messageId: eventId, timeoutMs: TIMEOUT_MS, secrets: NO_SECRETS };
      const posted = await post(options, one, signal);
      // Not the endpoint's fault, and time may help.
      if (posted.kind === "unsigned" || posted.kind === "no-way") return { kind: "withheld", message: posted.message };
      if (posted.kind === "unanswered") {
        return { kind: "failed", status: null, message: posted.message, retryable: true };
      }
      if (posted.kind === "never-left") {
        return { kind: "failed", status: null, message: posted.message, retryable: !posted.forever };
      }
      const { status, text, retryAfterMs } = posted;
      if (status >= 200 && status < 300) return { kind: "delivered", status };
      const message = `the receiver answered ${status}${text === "" ? "" : `: ${text}`}`;
      if (status === 410) return { kind: "gone", message };
      return { kind: "failed", status, message, retryable: true, retryAfterMs };
    },
  };
}

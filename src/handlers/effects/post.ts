import { type Dispatcher, errors, request } from "undici";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { beginningOf } from "../http/answer-body.ts";
import { neverLeft } from "../outbound/agent.ts";
import { READ_OF_ANSWER, shownOf } from "../outbound/answer-text.ts";
import { ForbiddenAddress } from "../outbound/guard.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { retryAfterOf } from "../outbound/retry-after.ts";
import { type SigningKeys, signedHeaders } from "../outbound/signing.ts";

const BODY_TIMEOUT_MS = 5_000;

export type PostOptions = {
  outbound: Pick<Outbound, "agentFor">;
  keys: SigningKeys;
  userAgent: string;
  clock: Pick<Clock, "now" | "after">;
};

export type Post = {
  tenantId: Uuid;
  url: string;
  headers: Readonly<Record<string, string>>;
  body: string;
  /** `webhook-id`: the same in every attempt. */
  messageId: string;
  /** From the connection to the last byte that is read of the answer. */
  timeoutMs: number;
  /** What nobody may see of an answer. */
  secrets: KnownSecrets;
};

export type Posted =
  | { kind: "answered"; status: number; text: string; requestId: string | null; retryAfterMs: number | undefined }
  /** It was not tried: what it takes could not be had here. */
  | { kind: "unsigned"; message: string }
  | { kind: "no-way"; message: string }
  /** Nothing of it can have reached the other side; `forever`: nor will it ever. */
  | { kind: "never-left"; forever: boolean; message: string }
  /** It may have arrived. */
  | { kind: "unanswered"; message: string };

/** Posts JSON, signed, to where a tenant may go. Redirects are not followed: they would lead where nobody looked. */
export async function post(options: PostOptions, one: Post, signal: AbortSignal): Promise<Posted> {
  const { outbound, keys, userAgent, clock } = options;
  let signed: Record<string, string>;
  try {
    const signing = await keys.keysOf(one.tenantId);
    signed = signedHeaders(signing, { id: one.messageId, atMs: clock.now(), body: one.body });
  } catch (error) {
    // Whoever has keys never sends unsigned.
    return { kind: "unsigned", message: `it could not be signed: ${messageOf(error)}` };
  }
  let agent: Dispatcher;
  try {
    agent = await outbound.agentFor(one.tenantId);
  } catch (error) {
    return { kind: "no-way", message: messageOf(error) };
  }
  // Before the headers it is undici that gives up, who knows whether anything has left.
  let late = false;
  let body: Dispatcher.ResponseData["body"] | undefined;
  const timer = clock.after(one.timeoutMs, () => {
    late = true;
    body?.destroy();
  });
  try {
    const answer = await request(one.url, {
      dispatcher: agent,
      method: "POST",
      headers: { ...one.headers, "content-type": "application/json", "user-agent": userAgent, ...signed },
      body: one.body,
      signal,
      headersTimeout: one.timeoutMs,
      bodyTimeout: BODY_TIMEOUT_MS,
    });
    body = answer.body.on("error", () => undefined);
    if (late) body.destroy();
    // The status has been said: what may still happen to the body changes nothing.
    const text = shownOf(await beginningOf(body, READ_OF_ANSWER).catch(() => ""), one.secrets);
    const requestId = headerOf(answer.headers["x-request-id"]);
    const retryAfterMs = retryAfterOf(answer.headers["retry-after"], clock.now());
    return { kind: "answered", status: answer.statusCode, text, requestId, retryAfterMs };
  } catch (error) {
    const message = describe(error);
    if (neverLeft(error)) return { kind: "never-left", forever: error instanceof ForbiddenAddress, message };
    if (error instanceof errors.InvalidArgumentError) return { kind: "never-left", forever: true, message };
    return { kind: "unanswered", message };
  } finally {
    timer.cancel();
  }
}

const headerOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value) ?? null;

function describe(error: unknown): string {
  const { code } = error as { code?: unknown };
  const text = messageOf(error) || (error instanceof AggregateError ? error.errors.map(messageOf).join("; ") : "");
  return typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
}

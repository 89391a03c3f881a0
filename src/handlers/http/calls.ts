import { type Dispatcher, request } from "undici";
import { type Hop, isRedirect, nextHop } from "../../domain/jobs/http/redirect.ts";
import type { HttpJob } from "../../domain/jobs/http.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { JobContext } from "../context.ts";
import { showInstant } from "../job-facts.ts";
import type { Outbound } from "../outbound/outbound.ts";
import { type SigningKeys, signedHeaders } from "../outbound/signing.ts";
import { JobFailure, permanentFailure, transientFailure } from "../outcome.ts";
import { failureOfCall } from "./failures.ts";

export type CallTools = {
  outbound: Pick<Outbound, "agentFor">;
  keys: SigningKeys;
  clock: Clock;
  userAgent: string;
};

export type Answer = Pick<Dispatcher.ResponseData, "statusCode" | "headers" | "body"> & { hop: Hop };

/** What goes for all calls of an attempt. `hops`: a line of each, for the attempt's log. */
export type Calling = {
  ctx: JobContext;
  callbackHeaders: Readonly<Record<string, string>>;
  signal: AbortSignal;
  hops: string[];
};

/**
 * Sends the request and follows where it is told to, as far as the job allows. Each hop is a call of its own: its agent
 * is asked for anew, and its connection looked at like the first.
 */
export async function callTarget(tools: CallTools, calling: Calling, job: HttpJob, first: Hop): Promise<Answer> {
  let hop = first;
  for (let followed = 0; ; followed++) {
    const answer = await callOnce(tools, calling, hop);
    const { statusCode, headers } = answer;
    const location = firstOf(headers.location);
    if (!isRedirect(statusCode) || location === undefined || job.redirects.policy === "refuse") return answer;
    answer.body.on("error", () => undefined).destroy();
    if (followed === job.redirects.max) {
      throw permanentFailure("http-redirect", `${hop.url.origin} answered ${statusCode}, one redirect too many`);
    }
    const next = nextHop(hop, statusCode, location);
    if (!next.ok) {
      const code = next.blocked ? "target-blocked" : "http-redirect";
      throw permanentFailure(code, `${hop.url.origin} answered ${statusCode}: ${next.fault}`);
    }
    if (job.completion === "callback" && !next.hop.isTrusted) {
      throw permanentFailure(
        "http-redirect",
        `${hop.url.origin} answered ${statusCode}: its Location leads elsewhere, where the callback's token must not go`,
      );
    }
    hop = next.hop;
  }
}

async function callOnce(
  { outbound, keys, clock, userAgent }: CallTools,
  { ctx, callbackHeaders, signal, hops }: Calling,
  hop: Hop,
): Promise<Answer> {
  const { run } = ctx;
  const signing = await keys.keysOf(run.tenantId).catch((cause: unknown) => {
    throw transientFailure("signing-unavailable", "The tenant's signing keys cannot be had", { cause });
  });
  const dispatcher = await outbound.agentFor(run.tenantId).catch((cause: unknown) => {
    throw transientFailure("rules-unavailable", "Where the tenant's calls may lead cannot be read", { cause });
  });
  const sentAt = clock.monotonic();
  // Without the query, which is often nobody else's business.
  const note = (ending: string) => {
    const { origin, pathname } = hop.url;
    hops.push(`${hop.method} ${origin}${pathname}: ${ending} after ${Math.round(clock.monotonic() - sentAt)} ms\n`);
  };
  try {
    const { statusCode, headers, body } = await request(hop.url, {
      dispatcher,
      method: hop.method as Dispatcher.HttpMethod,
      headers: {
        ...hop.headers,
        "accept-encoding": "identity",
        "user-agent": userAgent,
        "idempotency-key": run.id,
        "punctual-run": run.id,
        "punctual-attempt": String(run.attempt),
        "punctual-fence": String(run.fence),
        "punctual-scheduled-at": showInstant(run.scheduledAt),
        ...(hop.isTrusted ? callbackHeaders : {}),
        ...signedHeaders(signing, { id: run.id, atMs: clock.now(), body: hop.body ?? "" }),
      },
      body: hop.body ?? null,
      signal,
      // One clock for all of it: the job's.
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    note(String(statusCode));
    return { statusCode, headers, body, hop };
  } catch (error) {
    const failure = signal.aborted ? signal.reason : failureOfCall(error, hop.url.origin);
    note(failure instanceof JobFailure ? failure.code : "no answer");
    throw failure;
  }
}

export const firstOf = (value: string | string[] | undefined) => (Array.isArray(value) ? value[0] : value);

import { isRedirect } from "../../domain/jobs/http/redirect.ts";
import { fillRequest } from "../../domain/jobs/http/request.ts";
import { judgeStatus } from "../../domain/jobs/http/statuses.ts";
import type { HttpJob } from "../../domain/jobs/http.ts";
import type { KnownSecrets } from "../../domain/secrets/known.ts";
import { inTime } from "../../kernel/in-time.ts";
import { isMediaType } from "../../objects/media-type.ts";
import type { JobContext, JobResult } from "../context.ts";
import { jobFactsOf } from "../job-facts.ts";
import type { JobKindRunner } from "../kinds.ts";
import { READ_OF_ANSWER, shownOf } from "../outbound/answer-text.ts";
import { retryAfterOf } from "../outbound/retry-after.ts";
import { type JobFailure, permanentFailure, transientFailure } from "../outcome.ts";
import { beginningOf, TooLarge, Unreadable, unpacked, upTo } from "./answer-body.ts";
import { type Answer, type CallTools, callTarget, firstOf } from "./calls.ts";
import { failureOfCall } from "./failures.ts";

/** The status has been said: what may still come of its body is not worth the whole timeout. */
const FAILURE_TEXT_MS = 5_000;

/**
 * Calls the tenant's own endpoint: fill in, call, judge the status, keep the answer. One timer covers all of it, to the
 * last byte. What the attempt is told (a cancel, its deadline) ends the call at once. A log costs an object in the store,
 * so only calls that failed or were redirected have one: of one plain success the run says all there is to say.
 */
export function runHttp(tools: CallTools): JobKindRunner<"http"> {
  return async (ctx, job, payload, secrets) => {
    const filled = fillRequest(job, jobFactsOf(ctx, payload));
    if (!filled.ok) throw permanentFailure("http-request-invalid", filled.fault);
    const late = transientFailure("http-timeout", `${filled.hop.url.origin} did not answer within ${job.timeoutMs} ms`);
    return inTime(tools.clock, { withinMs: job.timeoutMs, late, signal: ctx.signal }, async (signal) => {
      const hops: string[] = [];
      try {
        const callbackHeaders = job.completion === "callback" ? callbackHeadersOf(tools, ctx, job) : {};
        const answer = await callTarget(tools, { ctx, callbackHeaders, signal, hops }, job, filled.hop);
        const result = await judge(tools, ctx, job, answer, secrets, signal);
        if (hops.length > 1) ctx.capture(hops.join(""));
        return result;
      } catch (error) {
        if (!ctx.signal.aborted && hops.length > 0) ctx.capture(hops.join(""));
        if (signal.aborted) throw signal.reason;
        throw error;
      }
    });
  };
}

function callbackHeadersOf({ clock }: CallTools, ctx: JobContext, job: HttpJob) {
  const { callbackWithinMs = Number.POSITIVE_INFINITY } = job;
  const { url, token } = ctx.callback(Math.min(ctx.deadlineAt, clock.now() + job.timeoutMs + callbackWithinMs));
  return { "punctual-callback-url": url, "punctual-callback-token": token };
}

async function judge(
  tools: CallTools,
  ctx: JobContext,
  job: HttpJob,
  answer: Answer,
  secrets: KnownSecrets,
  signal: AbortSignal,
): Promise<JobResult> {
  const { statusCode } = answer;
  answer.body.on("error", () => undefined);
  if (statusCode === 202 && job.completion === "callback") {
    answer.body.destroy();
    const { callbackWithinMs } = job;
    return { detached: callbackWithinMs === undefined ? {} : { callbackWithinMs } };
  }
  const verdict = judgeStatus(statusCode, job);
  if (verdict === "success") return keep(ctx, job, answer, signal);
  const origin = answer.hop.url.origin;
  if (verdict === "permanent" && isRedirect(statusCode) && answer.headers.location !== undefined) {
    answer.body.destroy();
    throw permanentFailure("http-redirect", `${origin} answered ${statusCode}: this job follows no redirects`);
  }
  const text = shownOf(await textOfFailure(tools, answer), secrets);
  const code = `http-${statusCode}`;
  const message = `${origin} answered ${statusCode}${text === "" ? "" : `: ${text}`}`;
  if (verdict === "permanent") throw permanentFailure(code, message);
  const retryAfterMs = retryAfterOf(answer.headers["retry-after"], tools.clock.now());
  throw transientFailure(code, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}

async function textOfFailure({ clock }: CallTools, { body, headers }: Answer): Promise<string> {
  const timer = clock.after(FAILURE_TEXT_MS, () => body.destroy());
  try {
    const text = unpacked(body, firstOf(headers["content-encoding"]), READ_OF_ANSWER);
    return await beginningOf(text, READ_OF_ANSWER);
  } catch {
    return "";
  } finally {
    timer.cancel();
  }
}

const BODILESS = new Set([204, 205, 304]);

/** The answer's bytes become the result while they come: never more of them is held than a piece. */
async function keep(ctx: JobContext, job: HttpJob, answer: Answer, signal: AbortSignal): Promise<JobResult> {
  const { statusCode, headers, hop } = answer;
  const origin = hop.url.origin;
  if (hop.method === "HEAD" || BODILESS.has(statusCode)) {
    answer.body.destroy();
    return undefined;
  }
  const body = unpacked(answer.body, firstOf(headers["content-encoding"]), job.responseLimitBytes);
  // Whoever stores it may wrap what went wrong with it.
  let failure: JobFailure | undefined;
  const pieces = (async function* () {
    try {
      yield* upTo(body, job.responseLimitBytes, job.largeResponse);
    } catch (error) {
      failure = failureOfBody(error, origin, job);
      throw failure;
    }
  })();
  try {
    const first = await pieces.next();
    if (first.done === true) return undefined;
    const found = firstOf(headers["content-type"]) ?? "";
    const mediaType = isMediaType(found) ? found : "application/octet-stream";
    return { output: await ctx.output("response", startingWith(first.value, pieces), mediaType) };
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    throw failure ?? error;
  } finally {
    answer.body.destroy();
  }
}

async function* startingWith(first: Uint8Array, rest: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* rest;
}

function failureOfBody(error: unknown, origin: string, { responseLimitBytes }: HttpJob): JobFailure {
  if (error instanceof TooLarge) {
    const message = `${origin} answered with more than ${responseLimitBytes} bytes (responseLimitBytes)`;
    return permanentFailure("response-too-large", message);
  }
  if (error instanceof Unreadable) {
    return permanentFailure("response-unreadable", `${origin} sent an answer that cannot be read: ${error.message}`);
  }
  return failureOfCall(error, origin);
}

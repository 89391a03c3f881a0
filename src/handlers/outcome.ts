import { type KnownSecrets, NO_SECRETS } from "../domain/secrets/known.ts";
import { messageOf, PunctualError } from "../kernel/errors.ts";
import { storableText } from "../kernel/storable.ts";
import type { StagedOutput } from "./context.ts";

/** How one attempt of a job ended. `retryAfterMs` asks for a later retry than the back-off's; failures' text is storable. */
export type HandlerOutcome =
  | { kind: "succeeded"; output?: StagedOutput }
  | { kind: "detached"; callbackWithinMs?: number }
  | HandlerFailure;

export type HandlerFailure = {
  kind: "failed";
  /** true: the run may be tried again; false: it ends as failed. */
  transient: boolean;
  code: string;
  message: string;
  retryAfterMs?: number;
};

/** What a job throws to say how it failed. Make one with transientFailure or permanentFailure. */
export class JobFailure extends Error {
  readonly transient: boolean;
  readonly code: string;
  readonly retryAfterMs: number | undefined;

  constructor(failure: { transient: boolean; code: string; message: string; retryAfterMs?: number; cause?: unknown }) {
    super(failure.message, { cause: failure.cause });
    this.name = "JobFailure";
    this.transient = failure.transient;
    this.code = failure.code;
    this.retryAfterMs = failure.retryAfterMs;
  }
}

/** `throw transientFailure("upstream-busy", "…")`: trying again may help, at the earliest after `retryAfterMs`. */
export function transientFailure(
  code: string,
  message: string,
  options: { retryAfterMs?: number; cause?: unknown } = {},
): JobFailure {
  return new JobFailure({ transient: true, code, message, ...options });
}

/** `throw permanentFailure("no-such-account", "…")`: trying again cannot help; the run fails now. */
export function permanentFailure(code: string, message: string, options: { cause?: unknown } = {}): JobFailure {
  return new JobFailure({ transient: false, code, message, ...options });
}

/**
 * Whatever was thrown, as an outcome. Never throws, whatever a stranger threw. A JobFailure says itself what it is;
 * after an abort the rest is `aborted`; anything unknown is transient (`handler-error`), because a retry is bounded and
 * a lost run is not. Secrets are taken out before anything is cut: half of one is one still.
 */
export function failureOf(thrown: unknown, signal: AbortSignal, secrets: KnownSecrets = NO_SECRETS): HandlerFailure {
  return (
    findDeclared(thrown, secrets) ?? {
      kind: "failed",
      transient: true,
      code: signal.aborted ? "aborted" : UNKNOWN_CODE,
      message: describeThrown(thrown, secrets),
    }
  );
}

const UNKNOWN_CODE = "handler-error";
const CODE_LIMIT = 100;
const NO_MESSAGE = "The job failed without a message";

/** The types of a JobFailure are promises of its caller only: a code may be an HTTP status, or missing. */
function findDeclared(thrown: unknown, secrets: KnownSecrets): HandlerFailure | undefined {
  try {
    // What we refused to take from the job: the same again would be refused again.
    if (thrown instanceof PunctualError && thrown.actor === "caller" && !thrown.retryable) {
      return {
        kind: "failed",
        transient: false,
        code: thrown.code,
        message: storableText(secrets.scrub(thrown.message)),
      };
    }
    if (!(thrown instanceof JobFailure)) return undefined;
    return {
      kind: "failed",
      transient: thrown.transient !== false,
      code: textOr(thrown.code, UNKNOWN_CODE, secrets, CODE_LIMIT),
      message: textOr(thrown.message, NO_MESSAGE, secrets),
      ...retryAfter(thrown.retryAfterMs),
    };
  } catch {
    // A proxy, or a getter of its own: it cannot even be asked what it is.
    return undefined;
  }
}

function textOr(found: unknown, fallback: string, secrets: KnownSecrets, limit?: number): string {
  const text = typeof found === "string" || typeof found === "number" ? String(found) : "";
  return text === "" ? fallback : storableText(secrets.scrub(text), limit);
}

function retryAfter(ms: number | undefined) {
  return ms !== undefined && Number.isFinite(ms) && ms > 0 ? { retryAfterMs: Math.ceil(ms) } : {};
}

/** Storable words for a thrown value, which can be anything, also an object whose own toString throws. Never throws. */
export function describeThrown(thrown: unknown, secrets: KnownSecrets = NO_SECRETS): string {
  try {
    return textOr(messageOf(thrown), NO_MESSAGE, secrets);
  } catch {
    return "The job threw something that cannot be shown";
  }
}

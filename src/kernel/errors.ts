/** Who has to do something about an error. HTTP statuses are not known here: see api/problem.ts. */
export type Actor = "caller" | "worker" | "operator" | "us";

/** An error with a stable code, the one who must act, and whether trying again can help. */
export class PunctualError extends Error {
  readonly code: string;
  readonly actor: Actor;
  readonly retryable: boolean;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(
    code: string,
    message: string,
    options: { actor: Actor; retryable?: boolean; details?: Record<string, unknown>; cause?: unknown },
  ) {
    super(message, { cause: options.cause });
    this.name = "PunctualError";
    this.code = code;
    this.actor = options.actor;
    this.retryable = options.retryable ?? false;
    this.details = options.details ?? {};
  }
}

type Details = Record<string, unknown>;

/** The caller sent something that cannot be accepted; `details` name the field, what was found, what is allowed. */
export function callerError(code: string, message: string, details: Details = {}): PunctualError {
  return new PunctualError(code, message, { actor: "caller", details });
}

/** Somebody who runs the installation must change something. */
export function operatorError(code: string, message: string, details: Details = {}, cause?: unknown): PunctualError {
  return new PunctualError(code, message, { actor: "operator", details, cause });
}

/** A broken promise inside the program. */
export function bug(message: string, details: Details = {}): PunctualError {
  return new PunctualError("internal", message, { actor: "us", details });
}

/** The answer never came: the same call, repeated with its natural key, tells what happened. */
export function outcomeUnknown(message: string, cause: unknown): PunctualError {
  return new PunctualError("outcome-unknown", message, { actor: "us", retryable: true, cause });
}

export function isOutcomeUnknown(error: unknown): boolean {
  return error instanceof PunctualError && error.code === "outcome-unknown";
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

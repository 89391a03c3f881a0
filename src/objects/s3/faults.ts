import { operatorError, PunctualError } from "../../kernel/errors.ts";

/** As much of an SDK error as is looked at. */
type ServiceFault = { name: string; $metadata?: { httpStatusCode?: number; requestId?: string }; $fault?: string };

type Explanation = { code: string; message: string };

const NOT_PERMITTED: Explanation = {
  code: "objects-not-permitted",
  message: "The object store refused: look at its credentials and their policy",
};
const EXPLANATIONS: Readonly<Record<string, Explanation>> = {
  NoSuchBucket: { code: "objects-no-bucket", message: "The object store has no such bucket" },
  PermanentRedirect: {
    code: "objects-wrong-region",
    message: "The bucket is in another region: set PUNCTUAL_S3_REGION",
  },
  AuthorizationHeaderMalformed: {
    code: "objects-wrong-region",
    message: "The bucket is in another region: set PUNCTUAL_S3_REGION",
  },
  RequestTimeTooSkewed: { code: "objects-clock-wrong", message: "This machine's clock is not the object store's" },
  CredentialsProviderError: {
    code: "objects-not-permitted",
    message: "There are no credentials for the object store",
  },
};

export function statusOf(error: unknown): number | undefined {
  return (error as ServiceFault | undefined)?.$metadata?.httpStatusCode;
}

function isNamed(error: unknown, ...names: readonly string[]): boolean {
  return error instanceof Error && names.includes(error.name);
}

/** There is nothing under that key, or not that version of it. */
export function isMissing(error: unknown): boolean {
  if (isNamed(error, "NoSuchBucket")) return false;
  // A deletion marker answers 405, an id that is no version's 400 on some servers.
  return [404, 405].includes(statusOf(error) ?? 0) || isNamed(error, "NoSuchVersion", "NoSuchKey", "NotFound");
}

/** The condition of a conditional create or read was not met. */
export function isRefusedCondition(error: unknown): boolean {
  return statusOf(error) === 412;
}

/** Somebody else's create of the same key is under way; who comes second has to come again. */
export function isConflict(error: unknown): boolean {
  return statusOf(error) === 409;
}

export function isUnsupported(error: unknown): boolean {
  return statusOf(error) === 501 || isNamed(error, "NotImplemented");
}

/**
 * An operator error for what the store or the way to it did; anything else comes back as it is. Neither the request nor
 * the store's own words are in it: they may carry an access key or a signature.
 */
export function asS3Fault(error: unknown, where: { bucket: string }): unknown {
  if (error instanceof PunctualError || !isServiceOrNetwork(error)) return error;
  const status = statusOf(error);
  const details = { bucket: where.bucket, cause: error.name, status, requestId: error.$metadata?.requestId };
  const known = EXPLANATIONS[error.name] ?? ([401, 403].includes(status ?? 0) ? NOT_PERMITTED : undefined);
  if (known !== undefined) return operatorError(known.code, known.message, details);
  const isPermanent = status !== undefined && status >= 300 && status < 500 && ![408, 409, 429].includes(status);
  if (isPermanent) return operatorError("objects-refused", "The object store refused a request", details);
  const message = "The object store cannot be used at the moment";
  return new PunctualError("objects-unavailable", message, { actor: "operator", retryable: true, details });
}

function isServiceOrNetwork(error: unknown): error is Error & ServiceFault {
  if (!(error instanceof Error)) return false;
  return (
    "$metadata" in error || "$fault" in error || "syscall" in error || "code" in error || error.name in EXPLANATIONS
  );
}

import { errors } from "undici";
import { messageOf } from "../../kernel/errors.ts";
import { isTlsFault } from "../outbound/agent.ts";
import { ForbiddenAddress } from "../outbound/guard.ts";
import { isLookUpFault } from "../outbound/look-up.ts";
import { type JobFailure, permanentFailure, transientFailure } from "../outcome.ts";

/** A call that got no answer, as a failure of its attempt; docs/jobs.md has the codes. */
export function failureOfCall(error: unknown, where: string): JobFailure {
  const causes = [...causesOf(error)];
  const blocked = causes.find((one) => one instanceof ForbiddenAddress);
  if (blocked !== undefined) return permanentFailure("target-blocked", blocked.message, { cause: error });
  if (error instanceof errors.InvalidArgumentError) {
    return permanentFailure("http-request-invalid", `${where}: ${error.message}`, { cause: error });
  }
  return transientFailure(codeOf(causes), `${where}: ${describe(causes)}`, { cause: error });
}

function codeOf(causes: readonly Error[]): string {
  if (causes.some(isLookUpFault)) return "dns-failed";
  if (causes.some((one) => isTlsFault((one as { code?: unknown }).code))) return "http-tls";
  return "http-connection";
}

function* causesOf(error: unknown): Generator<Error> {
  for (let at = error; at instanceof Error; at = at.cause) {
    yield at;
    if (at instanceof AggregateError) for (const one of at.errors) if (one instanceof Error) yield one;
  }
}

function describe(causes: readonly Error[]): string {
  const telling = causes.find((one) => one.message !== "") ?? causes[0];
  if (telling === undefined) return "the call failed";
  const { code } = telling as { code?: unknown };
  const text = messageOf(telling);
  return typeof code === "string" && !text.includes(code) ? `${text} (${code})` : text;
}

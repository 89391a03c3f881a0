import { PunctualError } from "../../kernel/errors.ts";
import { PROBLEMS, type ProblemCode } from "./catalogue.ts";
import { Problem } from "./problem.ts";

/** Whatever was thrown, as a problem. What nobody foresaw says nothing of itself to the caller. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof PunctualError) return fromPunctualError(error);
  const { type, limit } = (error ?? {}) as { type?: unknown; limit?: unknown };
  if (type === "entity.too.large") {
    return new Problem("body-too-large", `The body may have at most ${Number(limit).toLocaleString("en")} bytes`, {
      headers: { connection: "close" },
    });
  }
  if (type === "encoding.unsupported" || type === "charset.unsupported") {
    return new Problem("unsupported-media-type", "Send the body as UTF-8 without content encoding");
  }
  if (type === "request.aborted" || type === "request.size.invalid") {
    return new Problem("invalid-json", "The body ended before its announced length");
  }
  if (isDatabaseAbsent(error)) {
    return new Problem("unavailable", "The database does not answer at the moment", {
      headers: { "retry-after": "2" },
      cause: error,
    });
  }
  if (isContention(error)) {
    return new Problem("busy", "Others are changing the same thing, and were waited for in vain", {
      headers: { "retry-after": "1" },
      cause: error,
    });
  }
  if (error instanceof URIError) {
    return new Problem("unknown-route", "The path holds a percent escape that is not UTF-8");
  }
  return new Problem("internal", "The call failed in a way that was not foreseen; the request id leads to our log", {
    cause: error,
  });
}

/** A read that lost its connection, or was refused one: nothing was changed, and asking again is right. */
function isDatabaseAbsent(error: unknown): boolean {
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  if (/^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH)/.test(code)) return true;
  // 08 connection, 53 resources, 57P shutdown, 57014 statement timeout, 3D000 no such database.
  if (/^(08|53|57P|57014|3D000)/.test(code)) return true;
  return error instanceof Error && /connection terminated|timeout exceeded when trying to connect/i.test(error.message);
}

/** A lock that was not given in time, or a deadlock that came again: the transaction has done nothing. */
function isContention(error: unknown): boolean {
  return /^(55P03|40P01|40001)$/.test(String((error as { code?: unknown } | null)?.code ?? ""));
}

function fromPunctualError(error: PunctualError): Problem {
  const known = error.code in PROBLEMS ? (error.code as ProblemCode) : undefined;
  const options = { more: { ...error.details }, cause: error };
  if (/^secrets?-unavailable$/.test(error.code)) return new Problem("secrets-unavailable", error.message);
  if (known === "busy") return new Problem("busy", error.message, { headers: { "retry-after": "1" } });
  if (error.actor === "caller") return new Problem(known ?? "invalid-request", error.message, options);
  if (error.actor === "operator")
    return new Problem("unavailable", "The service cannot answer at the moment", {
      headers: { "retry-after": "2" },
      cause: error,
    });
  if (known === "outcome-unknown") {
    return new Problem("outcome-unknown", "Repeat the call with the same Idempotency-Key, or look up what it did", {
      headers: { "retry-after": "1" },
      cause: error,
    });
  }
  return new Problem("internal", "The call failed in a way that was not foreseen; the request id leads to our log", {
    cause: error,
  });
}

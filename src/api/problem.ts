import { PunctualError } from "../kernel/errors.ts";

/** The only place that knows HTTP status codes. docs/errors.md is compared with this catalogue by a test. */

export const SUCCESS = { ok: 200, created: 201, found: 303 } as const;
export type SuccessKind = keyof typeof SUCCESS;

/** `remedy` is what the caller can do, with code in backticks. */
type Entry = { status: number; title: string; remedy: string; retryable: boolean };
const refuse = (status: number, title: string, remedy: string): Entry => ({ status, title, remedy, retryable: false });
const retry = (status: number, title: string, remedy: string): Entry => ({ status, title, remedy, retryable: true });

export const PROBLEMS = {
  "invalid-json": refuse(
    400,
    "The body is not JSON",
    "`line` and `column` say where it stops being JSON. Bodies are UTF-8.",
  ),
  "invalid-request": refuse(
    400,
    "The request has fields that cannot be accepted",
    "`errors` names each field, what was found, what is allowed, and often what was meant.",
  ),
  "invalid-rule": refuse(
    400,
    "The recurrence rule cannot be accepted",
    "`errors` names the field of the rule (or the cron field), what was found and what is allowed.",
  ),
  "invalid-cursor": refuse(
    400,
    "The cursor is not one this list gave out",
    "Take `next` of the page before, unchanged, with the same filters; or begin without `after`.",
  ),
  "unknown-job": refuse(400, "No such job is registered", "`GET /v1/job-types` lists what is registered."),
  "unknown-calendar": refuse(
    400,
    "The tenant has no such calendar",
    "`GET /v1/calendars` lists them; `PUT /v1/calendars/{name}` makes one.",
  ),
  unauthenticated: refuse(
    401,
    "A valid API key is needed",
    "Send `Authorization: Bearer pk_…`. Unknown, expired and revoked keys are told apart nowhere.",
  ),
  forbidden: refuse(403, "The API key's role does not allow this", "Use a key with one of `allowedRoles`."),
  "invalid-link": refuse(
    403,
    "The link is not valid any more",
    "Links live five minutes. Ask `GET /v1/runs/:id/result` for a new one.",
  ),
  "not-found": refuse(404, "There is no such thing", "Also what another tenant’s id looks like."),
  "not-accepted": refuse(
    404,
    "Nothing was accepted under this request key",
    "The request under this key never took effect: repeating it is safe.",
  ),
  "no-result": refuse(
    404,
    "The run has no result",
    "`state` says how far the run is. Runs without output never have a result.",
  ),
  "unknown-route": refuse(404, "There is no such route", "`/docs` lists the routes."),
  "method-not-allowed": refuse(405, "The route does not answer this method", "The `Allow` header lists the methods."),
  "request-key-reused": refuse(
    409,
    "The idempotency key was used with another body",
    "A new request needs a new key. The earlier request stands.",
  ),
  "schedule-key-taken": refuse(409, "Another schedule has this key", "`scheduleId` is the schedule that has it."),
  "revision-conflict": refuse(
    409,
    "The schedule was changed meanwhile",
    "`current` is the schedule as it is now: apply the change to it and send its revision.",
  ),
  "calendar-conflict": refuse(
    409,
    "The calendar was changed meanwhile",
    "`current` is the calendar as it is now (null: there is none): apply the change to it and send its version.",
  ),
  "calendar-in-use": refuse(
    409,
    "Schedules use the calendar",
    "`scheduleIds` are some of them. Take it out of their `calendars`, or delete them.",
  ),
  "schedule-not-active": refuse(409, "The schedule is finished or deleted", "`status` says what it is."),
  overlap: refuse(
    409,
    "The schedule's overlap policy refuses another open run",
    "Wait for the open run to end, or cancel it. The request key is not used up.",
  ),
  "run-not-failed": refuse(
    409,
    "The run is not one that was given up",
    "`state` says how it stands: it was replayed already, or has ended otherwise.",
  ),
  "dead-letter-replayed": refuse(
    409,
    "The run was opened again already",
    "`GET /v1/dead-letters/:runId` says by whom. The run can be canceled while it is open.",
  ),
  "run-ended": refuse(409, "The run has ended already", "`state` says how."),
  "effect-settled": refuse(
    409,
    "The effect was settled already",
    "`state` says how. What was sent or resolved stays so; what failed may be sent again or dropped.",
  ),
  "effect-sending": retry(
    409,
    "The effect is being sent",
    "Look again after `Retry-After` seconds: it may be settled by then.",
  ),
  "operation-ended": refuse(409, "The operation has ended already", "`state` says how."),
  "result-expired": refuse(410, "The result was removed by retention", "The history stays; the bytes are gone."),
  "history-removed": refuse(
    410,
    "The run is older than the history that is kept",
    "Its rows were removed by retention, or are about to be. A dead letter of it can be dismissed; run-now makes a new run.",
  ),
  "body-too-large": refuse(413, "The body is larger than 1 MiB", "Send less at once."),
  "payload-too-large": refuse(
    413,
    "The payload is larger than 64 KiB",
    "Keep large data elsewhere and put a reference into the payload.",
  ),
  "unsupported-media-type": refuse(
    415,
    "The body's media type is not accepted",
    "Send `Content-Type: application/json`, UTF-8, no content encoding.",
  ),
  "too-many-operations": retry(
    429,
    "The tenant has too many open operations",
    "Wait for some of them to end, or cancel them. The request key is not used up.",
  ),
  internal: refuse(
    500,
    "Something broke on our side",
    "Tell the operator the `requestId`; nothing is known to have been changed.",
  ),
  "outcome-unknown": retry(
    503,
    "It is not known whether the call took effect",
    "Repeat with the same `Idempotency-Key`, or look it up with `?requestKey=`. Without a key, read before you repeat.",
  ),
  busy: retry(503, "Others are changing the same thing all the time", "Try again after `Retry-After` seconds."),
  unavailable: retry(
    503,
    "The service cannot answer at the moment",
    "Try again later; `/readyz` and `/v1/status` say what is wrong.",
  ),
  "no-redis": refuse(
    503,
    "There are no queues in Redis to show",
    "Queues exist where `redis-server` is on the PATH of `npm start`, or `REDIS_URL` is set. Nothing is broken without.",
  ),
} as const satisfies Record<string, Entry>;
export type ProblemCode = keyof typeof PROBLEMS;

/** One thing wrong with one field. */
export type FieldFault = {
  field: string;
  message: string;
  found?: string;
  allowed?: string;
  didYouMean?: string;
};

/** Ends a request with a problem document. `more` become members of the document. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly errors: readonly FieldFault[];
  readonly more: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    code: ProblemCode,
    detail: string,
    options: {
      errors?: readonly FieldFault[];
      more?: Record<string, unknown>;
      headers?: Record<string, string>;
      cause?: unknown;
    } = {},
  ) {
    super(detail, { cause: options.cause });
    this.code = code;
    this.errors = options.errors ?? [];
    this.more = options.more ?? {};
    this.headers = options.headers ?? {};
  }
}

export function statusOf(code: ProblemCode): number {
  return PROBLEMS[code].status;
}

/** One fault of one field, as a whole problem. */
export function fieldProblem(fault: FieldFault): Problem {
  return problemOfFaults("invalid-request", [fault]);
}

/** Says the first of one or more faults and counts the others; of these the document names 50 at most. */
export function problemOfFaults(code: ProblemCode, errors: readonly FieldFault[]): Problem {
  const more = errors.length === 1 ? "" : ` (and ${errors.length - 1} more)`;
  return new Problem(code, sentenceOf(errors[0]!) + more, { errors: errors.slice(0, 50) });
}

/** `rule.zone: found "Europe/Berln"; no zone of this name; allowed: …; did you mean "Europe/Berlin"?` */
function sentenceOf(fault: FieldFault): string {
  const { field, message, found, allowed, didYouMean } = fault;
  // A field that is missing or unknown is all that was found.
  const saysFound = found !== undefined && !/^is (missing|not a known field)$/.test(message);
  const parts = [
    ...(saysFound ? [`found ${found}`] : []),
    message,
    ...(allowed === undefined || message.endsWith(allowed) ? [] : [`allowed: ${allowed}`]),
    ...(didYouMean === undefined ? [] : [`did you mean "${didYouMean}"?`]),
  ];
  return `${field}: ${parts.join("; ")}`;
}

/** The RFC 9457 document. */
export function documentOf(problem: Problem, context: { publicUrl: string; instance: string; requestId: string }) {
  const { status, title, retryable } = PROBLEMS[problem.code];
  return {
    type: `${context.publicUrl}/docs/errors#${problem.code}`,
    title,
    status,
    detail: problem.message,
    instance: context.instance,
    code: problem.code,
    retryable,
    requestId: context.requestId,
    ...(problem.errors.length > 0 ? { errors: problem.errors } : {}),
    ...problem.more,
  };
}

/** Whatever was thrown, as a problem. What nobody foresaw says nothing of itself to the caller. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof PunctualError) return fromPunctualError(error);
  const type = (error as { type?: unknown } | null)?.type;
  if (type === "entity.too.large") {
    return new Problem("body-too-large", "The body may have at most 1,048,576 bytes", {
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

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
    "A valid API key or token is needed",
    "Send `Authorization: Bearer pk_…`, or a token of the trusted issuer. Unknown, expired and revoked keys are told apart nowhere.",
  ),
  forbidden: refuse(
    403,
    "The caller's role does not allow this",
    "Use a key or token with one of `allowedRoles`; of a token, `detail` names the claim.",
  ),
  "cross-origin": refuse(
    403,
    "The call does not come from a page of this installation",
    "Calls by cookie that change something are answered to pages of ours only. Others send `Authorization: Bearer pk_…`. Behind a proxy, `PUNCTUAL_PUBLIC_URL` says where our pages are.",
  ),
  "csrf-token": refuse(
    403,
    "A call by cookie needs the token of its session",
    "Send `X-CSRF-Token` with what `GET /v1/session` says, or `Authorization: Bearer pk_…` in place of the cookie.",
  ),
  "job-not-allowed": refuse(
    403,
    "The tenant may not use this job",
    "`allowedJobs` are those it may use; an admin changes them with `PATCH /v1/tenants/{tenant}`.",
  ),
  "image-not-allowed": refuse(
    403,
    "The operator does not allow this image",
    "`errors` has the images that are allowed; the operator changes them with `PUNCTUAL_CONTAINER_IMAGES`.",
  ),
  "tenant-suspended": refuse(
    403,
    "The tenant is suspended",
    "It may read, and change nothing. An admin resumes it with `PATCH /v1/tenants/{tenant}`.",
  ),
  "interval-below-quota": refuse(
    403,
    "The rule's instants are closer together than the tenant's quota allows",
    "`found` is the least time between two of them (ms), clock changes included, `limit` what is allowed. `GET /v1/quotas` has it.",
  ),
  "invalid-link": refuse(
    403,
    "The link is not valid any more",
    "Links live five minutes. Ask `GET /v1/runs/:id/result` for a new one.",
  ),
  "not-found": refuse(404, "There is no such thing", "Also what another tenant’s id looks like."),
  "tenant-not-found": refuse(404, "There is no such tenant", "`GET /v1/tenants` lists them, for admins."),
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
  "tenant-name-taken": refuse(409, "Another tenant has this name", "`tenantId` is the tenant that has it."),
  "key-not-current": refuse(
    409,
    "The key is revoked, expired or replaced",
    "`state` says how it stands, `replacedBy` which key to rotate in its place; or create another.",
  ),
  "webhook-disabled": refuse(
    409,
    "The webhook is disabled",
    "`disabledReason` of the webhook says why. `POST /v1/webhooks/{webhook}/enable` lets it hear of events again.",
  ),
  "too-many-email-templates": refuse(
    409,
    "The tenant has as many email templates as it may have",
    "Delete one that no effect names.",
  ),
  "too-many-webhooks": refuse(
    409,
    "The tenant has as many webhooks as it may have",
    "Delete one that nobody needs; one webhook may hear of all events.",
  ),
  "too-many-signing-keys": refuse(
    409,
    "The tenant has as many signing keys as may sign",
    "Each is one more signature in every call. Revoke one that nobody verifies with, or wait for a rotation to be over.",
  ),
  "last-admin-key": refuse(
    409,
    "It is the last admin key of the installation",
    "Without it nobody could make keys or tenants. Make another admin key first, or rotate this one.",
  ),
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
  "email-template-conflict": refuse(
    409,
    "The email template was changed meanwhile",
    "`current` is the template as it is now (null: there is none): apply the change to it and send its version.",
  ),
  "quota-conflict": refuse(
    409,
    "The quotas were changed meanwhile",
    "`current` is what they are now (null: nobody has set any): apply the change to it and send its version.",
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
  "stale-fence": refuse(
    409,
    "Another attempt has taken over, or the run has ended",
    "Stop: whatever this attempt says counts no more. Nothing was changed.",
  ),
  "result-conflict": refuse(
    409,
    "This attempt has published another result before",
    "The first result stands. An attempt that repeats its completion sends the same checksum.",
  ),
  "lease-lapsed": refuse(
    409,
    "The attempt's lease is over",
    "While nobody has taken over, a heartbeat revives it: then say it again. A callback that comes too late is too late.",
  ),
  "not-holder": refuse(
    409,
    "The attempt is not this worker's",
    "It was detached, and perhaps adopted by another. Whoever does its work says so with its callback token, or adopts it.",
  ),
  "not-detached": refuse(
    409,
    "Another worker holds the attempt",
    "Only an attempt that its worker has detached can be adopted.",
  ),
  "output-unusable": refuse(
    409,
    "The output cannot be the run's result",
    "`found` says why. Stage it again and complete with what that answers, or fail the attempt.",
  ),
  "too-many-outputs": refuse(
    409,
    "The attempt has as many outputs as it may",
    "`limit` says how many. A run has one result: put the parts into one file, or keep them elsewhere.",
  ),
  "operation-ended": refuse(409, "The operation has ended already", "`state` says how."),
  "result-expired": refuse(410, "The result was removed by retention", "The history stays; the bytes are gone."),
  "history-removed": refuse(
    410,
    "The run is older than the history that is kept",
    "Its rows were removed by retention, or are about to be. A dead letter of it can be dismissed; run-now makes a new run.",
  ),
  "body-too-large": refuse(413, "The body is larger than 1 MiB", "Send less at once."),
  "output-too-large": refuse(
    413,
    "The output is larger than what the API takes",
    "`limitBytes` says how much. Ask `POST /v1/worker/upload` for a link: where results are in a bucket, larger ones go there.",
  ),
  "payload-too-large": refuse(
    413,
    "The payload is larger than 64 KiB, or than the tenant's quota",
    "Keep large data elsewhere and put a reference into the payload.",
  ),
  "unsupported-media-type": refuse(
    415,
    "The body's media type is not accepted",
    "Send `Content-Type: application/json`, UTF-8, no content encoding.",
  ),
  infeasible: refuse(
    422,
    "The schedule's runs could not start in time",
    "`feasibility` says what the busiest minute comes to and which window would do; `onInfeasible` of the class's quota decides.",
  ),
  "quota-exceeded": retry(
    429,
    "A quota of the tenant is used up",
    "`quota` names it, with `limit` and `used`. Ask again after `Retry-After` seconds; `GET /v1/usage` has all. The request key is not used up.",
  ),
  "too-many-failures": retry(
    429,
    "Too many calls from this address had no valid credential",
    "Wait `Retry-After` seconds. Keys that were good here lately are answered.",
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
  "secrets-unavailable": refuse(
    503,
    "Secrets cannot be kept or opened here",
    "The operator sets `PUNCTUAL_SECRET_KEYS`; `punctual doctor` says what is missing. Nothing was stored.",
  ),
  "issuer-unreachable": retry(
    503,
    "The issuer of tokens does not answer",
    "Whether the token is good is not known. Try again after `Retry-After` seconds; API keys work meanwhile.",
  ),
  "no-redis": refuse(
    503,
    "There are no queues in Redis to show",
    "Queues exist where `redis-server` is on the PATH of `npm start`, or `REDIS_URL` is set. Nothing is broken without.",
  ),
} as const satisfies Record<string, Entry>;
export type ProblemCode = keyof typeof PROBLEMS;

import { z } from "zod";
import { didYouMean } from "../api/input/did-you-mean.ts";
import { DEFAULT_ATTEMPT_LIMIT_MS } from "../domain/definition.ts";
import { operatorError } from "../kernel/errors.ts";
import { containerSettings, findContainerFault } from "./kinds/container-settings.ts";
import { outboundSettings, readRanges } from "./kinds/outbound-settings.ts";
import { findOidcFault, oidcSettings } from "./oidc.ts";
import { faultOfKeys } from "./secrets/key-list.ts";

/**
 * The only reader of the environment. Durations are whole milliseconds. docs/operations.md is compared with this
 * table by a test.
 */
function whole(min: number, max: number, fallback: number) {
  const error = `allowed: a whole number from ${min} to ${max}`;
  return z.coerce.number({ error }).int({ error }).min(min, { error }).max(max, { error }).default(fallback);
}

const schema = z.object({
  DATABASE_URL: z
    .url({ protocol: /^postgres(ql)?$/ })
    .optional()
    .describe("PostgreSQL, the authority. `npm start` brings its own when this is not set"),
  REDIS_URL: z
    .url({ protocol: /^rediss?$/ })
    .optional()
    .describe("Redis for hints. Without it, work is taken straight from the outbox"),
  PUNCTUAL_DIR: z.string().default(".punctual").describe("Where `npm start` keeps its data, its key and its results"),
  PUNCTUAL_OBJECTS: z.enum(["filesystem", "s3"]).default("filesystem").describe("Where results are kept"),
  PUNCTUAL_OBJECTS_DIR: z.string().optional().describe("Result files (default: `objects` in PUNCTUAL_DIR)"),
  PUNCTUAL_RESULTS_DAYS: whole(1, 3_650, 7).describe("How long results are kept; their runs keep size and checksum"),
  PUNCTUAL_OUTPUT_LIMIT_BYTES: whole(1_024, 1_099_511_627_776, 1_073_741_824).describe(
    "Largest output of a job, also of what comes over HTTP; the same on every `api` and `worker`",
  ),
  PUNCTUAL_LOG_LIMIT_BYTES: whole(0, 67_108_864, 1_048_576).describe(
    "How much of an attempt's log is kept, the newest; 0: none is",
  ),
  PUNCTUAL_S3_BUCKET: z
    .string()
    .regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/)
    .optional()
    .describe("The bucket, with PUNCTUAL_OBJECTS=s3; it must exist"),
  PUNCTUAL_S3_PREFIX: z
    .string()
    .regex(/^([A-Za-z0-9][A-Za-z0-9._-]*\/)*$/, { error: "allowed: empty, or names that each end with a slash" })
    .default("punctual/")
    .describe("Begins every key; an installation has one of its own"),
  PUNCTUAL_S3_REGION: z.string().default("us-east-1").describe("The bucket's region"),
  PUNCTUAL_S3_ENDPOINT: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Address of a server that is not AWS"),
  PUNCTUAL_S3_PATH_STYLE: z
    .enum(["no", "yes"])
    .default("no")
    .describe("`yes` where the bucket is in the path of URLs, not in the host's name"),
  PUNCTUAL_S3_ACCESS_KEY: z.string().min(1).optional().describe("Access key id (default: where the AWS SDK looks)"),
  PUNCTUAL_S3_SECRET_KEY: z.string().min(1).optional().describe("Its secret"),
  PUNCTUAL_S3_ENCRYPTION: z
    .enum(["none", "AES256", "aws:kms"])
    .default("none")
    .describe("Server-side encryption that is asked for; `none` leaves it to the bucket"),
  PUNCTUAL_S3_KMS_KEY: z.string().min(1).optional().describe("Key id for `aws:kms` (default: the account's)"),
  PUNCTUAL_S3_DOWNLOADS: z
    .enum(["proxied", "presigned"])
    .default("proxied")
    .describe("Whether result links lead through the API or to the store itself"),
  PUNCTUAL_S3_TIMEOUT_MS: whole(1_000, 600_000, 30_000).describe("Longest wait for the store's next sign of life"),
  PUNCTUAL_HOST: z.string().default("127.0.0.1").describe("Address the API listens on"),
  PUNCTUAL_PORT: whole(0, 65_535, 8080).describe("Port of the API; 0 takes a free one"),
  PUNCTUAL_PUBLIC_URL: z
    .url()
    .optional()
    .describe("Where callers reach the API, behind a proxy; links in emails and webhooks, and callbacks, lead there"),
  PUNCTUAL_TRUST_PROXY: z
    .string()
    .optional()
    .transform((text, issues) => (/^[1-9]\d?$/.test(text ?? "") ? Number(text) : readRanges(text, issues)))
    .describe(
      "Proxies before the API whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed: how many there are, or their addresses and ranges",
    ),
  PUNCTUAL_SECRET: z
    .string()
    .min(16)
    .optional()
    .describe(
      "Signs cursors, download links, sessions and callback tokens; the same on every `api`, `sender` and `worker`",
    ),
  PUNCTUAL_SECRET_KEYS: z
    .string()
    .optional()
    .superRefine((text, issues) => {
      const fault = text === undefined ? undefined : faultOfKeys(text);
      if (fault !== undefined) issues.addIssue({ code: "custom", message: fault });
    })
    .describe(
      "Master keys of secrets in payloads, `id:base64`, the newest first; the same on every `api`, `worker` and `sender` (default: `secret-keys` in PUNCTUAL_DIR, which `npm start` makes)",
    ),
  ...oidcSettings,
  ...containerSettings,
  PUNCTUAL_METRICS_HOST: z
    .string()
    .default("0.0.0.0")
    .describe("Address of /metrics, /healthz and /readyz of the roles other than api"),
  PUNCTUAL_METRICS_PORT: whole(0, 65_535, 9464).describe("Port of the same; 0 takes a free one"),
  PUNCTUAL_LOG_LEVEL: z
    .enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])
    .default("info")
    .describe("Least severe log line written; `npm start` takes `info` for `warn`"),
  PUNCTUAL_REDIS_PREFIX: z
    .string()
    .regex(/^[a-zA-Z0-9_-]{1,40}$/)
    .default("punctual")
    .describe("Begins every Redis key"),
  PUNCTUAL_SHARD: whole(0, 1023, 0).describe("Number of the shard that DATABASE_URL holds"),
  PUNCTUAL_SLOTS_SHORT: whole(0, 100_000, 200).describe("Attempts of class `short` a worker runs side by side"),
  PUNCTUAL_SLOTS_LONG: whole(0, 100_000, 20).describe("The same for class `long`"),
  PUNCTUAL_SLOTS_MEMORY: whole(0, 100_000, 4).describe("The same for class `memory`"),
  PUNCTUAL_THREADS: whole(0, 1_024, 2).describe(
    "Threads of a worker for jobs that compute; others wait for their turn",
  ),
  PUNCTUAL_THREAD_MEMORY_MB: whole(32, 1_048_576, 512).describe(
    "What such a job may need before it is `memory-exceeded`",
  ),
  PUNCTUAL_BLOCKED_MS: whole(0, 600_000, 2_000).describe(
    "From when on a worker whose event loop is blocked says so, and by which jobs; 0: it does not",
  ),
  PUNCTUAL_ATTEMPT_LIMIT_LONG_MS: whole(1_000, 86_400_000, DEFAULT_ATTEMPT_LIMIT_MS.long).describe(
    "Longest attempt of class `long`, and of class `remote`; of class `short` it is 15 minutes",
  ),
  PUNCTUAL_ATTEMPT_LIMIT_MEMORY_MS: whole(1_000, 86_400_000, DEFAULT_ATTEMPT_LIMIT_MS.memory).describe(
    "The same for class `memory`",
  ),
  PUNCTUAL_LEASE_TTL_MS: whole(1_000, 3_600_000, 60_000).describe("How long a claim lasts without a heartbeat"),
  PUNCTUAL_HEARTBEAT_MS: whole(100, 600_000, 10_000).describe("How often a worker renews its leases"),
  PUNCTUAL_LEASE_MARGIN_MS: whole(0, 600_000, 5_000).describe(
    "How long before its end a worker stops trusting a lease",
  ),
  PUNCTUAL_GRACE_MS: whole(0, 3_600_000, 30_000).describe(
    "How long running attempts may go on when a worker is asked to stop",
  ),
  PUNCTUAL_VERB_DEADLINE_MS: whole(1_000, 600_000, 30_000).describe(
    "Longest wait for one transaction before its outcome counts as unknown",
  ),
  PUNCTUAL_LOCK_TIMEOUT_MS: whole(10, 60_000, 1_000).describe("Longest wait for one row lock"),
  PUNCTUAL_DB_CONNECTIONS: whole(2, 500, 10).describe("Database connections of one process, heartbeats apart"),
  PUNCTUAL_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Where commands such as `punctual runs list` find the API (default: the one started from this checkout)"),
  PUNCTUAL_KEY: z
    .string()
    .regex(/^\S+$/)
    .optional()
    .describe("The API key of those commands (default: the demo's, `key` in PUNCTUAL_DIR)"),
  PUNCTUAL_ZONEINFO: z
    .string()
    .optional()
    .describe(
      "A zoneinfo directory (with tzdata.zi) to offer for adoption in place of the tz database of this release",
    ),
  PUNCTUAL_SMTP_URL: z
    .url({ protocol: /^smtps?$/, error: "allowed: such as smtp://user:password@mail.example.com:587 or smtps://…" })
    .optional()
    .describe("The mail server of `email` effects (smtps: TLS from the first byte). Without it they are refused"),
  PUNCTUAL_SMTP_FROM: z
    .string()
    .regex(/^[^\r\n]*[^\s@<]@[^\s@>]+>?$/, "allowed: an address, such as Punctual <punctual@example.com>")
    .optional()
    .describe("Whom emails are from, required with PUNCTUAL_SMTP_URL; its domain is that of their Message-IDs"),
  PUNCTUAL_SMTP_TLS: z
    .enum(["required", "opportunistic", "off"])
    .default("required")
    .describe(
      "STARTTLS on smtp:// connections: `required`, `opportunistic` (where it is offered) or `off`. Certificates are checked always",
    ),
  PUNCTUAL_SMTP_CONNECTIONS: whole(1, 100, 5).describe("Emails one process sends side by side"),
  PUNCTUAL_WEBHOOK_CONCURRENCY: whole(1, 1_000, 32).describe("Webhooks one process calls side by side"),
  ...outboundSettings,
  PUNCTUAL_PARTITIONS: z
    .enum(["week", "day"])
    .default("week")
    .describe("Width of the partitions of runs; `day` from about 10 million runs a day"),
  PUNCTUAL_HISTORY_DAYS: whole(1, 36_500, 30).describe("How long ended runs are kept, at least"),
  PUNCTUAL_HISTORY_AFTERWARDS: z
    .enum(["drop", "detach"])
    .default("drop")
    .describe(
      "What becomes of old history: `detach` leaves it as tables of their own, to be archived and dropped by hand",
    ),
  PUNCTUAL_REQUEST_KEY_DAYS: whole(1, 365, 7).describe("How long an `Idempotency-Key` is remembered"),
  PUNCTUAL_AUDIT_DAYS: whole(1, 36_500, 400).describe("How long the audit trail is kept"),
});

const SECRET = new Set([
  "DATABASE_URL",
  "REDIS_URL",
  "PUNCTUAL_SECRET",
  "PUNCTUAL_SECRET_KEYS",
  "PUNCTUAL_KEY",
  "PUNCTUAL_SMTP_URL",
  "PUNCTUAL_EGRESS_PROXY",
  "PUNCTUAL_S3_SECRET_KEY",
]);

export type Config = z.infer<typeof schema>;

/** Every key, with what it means; for the docs and their test. */
export const CONFIG_KEYS: readonly string[] = Object.keys(schema.shape);
export const CONFIG_DESCRIPTIONS: ReadonlyMap<string, string> = new Map(
  Object.entries(schema.shape).map(([key, field]) => [key, field.description ?? ""]),
);

/** The environment of this process, for entry points to hand to `readConfig`. */
export function environment(): Readonly<Record<string, string | undefined>> {
  return process.env;
}

/**
 * Reads the configuration, refusing what makes no sense alone or together.
 * Throws an operator error that names the key, what was found and what is allowed.
 */
export function readConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const given = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const parsed = schema.safeParse(given);
  if (!parsed.success) {
    const issue = parsed.error.issues[0]!;
    const key = String(issue.path[0]);
    // A key is not for screens and logs, not even a wrong one.
    const found = SECRET.has(key) ? "" : `found "${given[key]}"; `;
    throw operatorError("config-invalid", `${key}: ${found}${issue.message}`, { key });
  }
  const config = parsed.data;
  const needed = 3 * config.PUNCTUAL_HEARTBEAT_MS + config.PUNCTUAL_LEASE_MARGIN_MS;
  if (needed > config.PUNCTUAL_LEASE_TTL_MS) {
    throw operatorError(
      "config-invalid",
      `PUNCTUAL_LEASE_TTL_MS: found ${config.PUNCTUAL_LEASE_TTL_MS}; three heartbeats and the margin must fit in one lease, ` +
        `so at least ${needed} with PUNCTUAL_HEARTBEAT_MS ${config.PUNCTUAL_HEARTBEAT_MS}`,
      { key: "PUNCTUAL_LEASE_TTL_MS" },
    );
  }
  if (config.PUNCTUAL_SMTP_URL !== undefined && config.PUNCTUAL_SMTP_FROM === undefined) {
    throw operatorError(
      "config-invalid",
      "PUNCTUAL_SMTP_FROM: is not set; with PUNCTUAL_SMTP_URL emails need a sender",
      {
        key: "PUNCTUAL_SMTP_FROM",
      },
    );
  }
  if (config.PUNCTUAL_REQUEST_KEY_DAYS > config.PUNCTUAL_HISTORY_DAYS) {
    throw operatorError(
      "config-invalid",
      `PUNCTUAL_REQUEST_KEY_DAYS: found ${config.PUNCTUAL_REQUEST_KEY_DAYS}; a key may not outlive the run it names, ` +
        `so at most ${config.PUNCTUAL_HISTORY_DAYS} with PUNCTUAL_HISTORY_DAYS ${config.PUNCTUAL_HISTORY_DAYS}`,
      { key: "PUNCTUAL_REQUEST_KEY_DAYS" },
    );
  }
  const fault = findS3Fault(config) ?? findOidcFault(config) ?? findContainerFault(config);
  if (fault !== undefined) throw operatorError("config-invalid", `${fault.key}: ${fault.what}`, { key: fault.key });
  const unknown = Object.keys(given).find((key) => key.startsWith("PUNCTUAL_") && !CONFIG_KEYS.includes(key));
  if (unknown !== undefined) {
    const meant = didYouMean(unknown, CONFIG_KEYS);
    const advice = meant === undefined ? `allowed: ${CONFIG_KEYS.join(", ")}` : `did you mean ${meant}?`;
    throw operatorError("config-invalid", `${unknown}: is no setting; ${advice}`, { key: unknown });
  }
  return config;
}

function findS3Fault(config: Config): { key: string; what: string } | undefined {
  if (config.PUNCTUAL_OBJECTS === "s3" && config.PUNCTUAL_S3_BUCKET === undefined) {
    return { key: "PUNCTUAL_S3_BUCKET", what: "is not set; PUNCTUAL_OBJECTS=s3 needs it" };
  }
  const [id, secret] = [config.PUNCTUAL_S3_ACCESS_KEY, config.PUNCTUAL_S3_SECRET_KEY];
  if ((id === undefined) !== (secret === undefined)) {
    const key = id === undefined ? "PUNCTUAL_S3_ACCESS_KEY" : "PUNCTUAL_S3_SECRET_KEY";
    return { key, what: "is not set; an access key id and its secret belong together" };
  }
  if (config.PUNCTUAL_S3_KMS_KEY !== undefined && config.PUNCTUAL_S3_ENCRYPTION !== "aws:kms") {
    return { key: "PUNCTUAL_S3_KMS_KEY", what: "is of use with PUNCTUAL_S3_ENCRYPTION aws:kms only" };
  }
  return undefined;
}

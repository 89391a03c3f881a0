import { createLocalJWKSet, createRemoteJWKSet, errors, type JWTVerifyGetKey } from "jose";
import type { Clock } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import { Problem } from "../problems/problem.ts";

/** How long keys are used before they are asked for anew, and how long they are used where nobody answers. */
const FRESH_MS = 10 * 60_000;
const USABLE_MS = 60 * 60_000;
/** Unknown key ids make us ask no more often than this: a token is made by anybody. */
const COOLDOWN_MS = 10_000;
const PATIENCE_MS = 5_000;
const LONGEST_DOCUMENT = 1_000_000;

/**
 * The keys an issuer signs with, as it publishes them. They are remembered: an issuer that is away for less than an hour
 * takes nobody's access. Throws `issuer-unreachable` where there is nothing to judge a token by.
 */
export function keysOf(options: {
  issuer: string;
  /** Undefined: the issuer's discovery document says it. */
  jwksUrl: string | undefined;
  clock: Clock;
  cooldownMs?: number;
}): JWTVerifyGetKey {
  const { issuer, clock, cooldownMs = COOLDOWN_MS } = options;
  let keys: { resolve: ReturnType<typeof createLocalJWKSet>; readAt: number } | undefined;
  let reading: Promise<void> | undefined;
  let failure: unknown;
  let triedAt = Number.NEGATIVE_INFINITY;

  const age = () => (keys === undefined ? Number.POSITIVE_INFINITY : clock.monotonic() - keys.readAt);

  async function read(): Promise<void> {
    triedAt = clock.monotonic();
    const url = options.jwksUrl ?? (await discover(issuer));
    const remote = createRemoteJWKSet(new URL(url), { timeoutDuration: PATIENCE_MS });
    await remote.reload();
    keys = { resolve: createLocalJWKSet(remote.jwks()!), readAt: clock.monotonic() };
  }

  /** One reader at a time, whoever waits for it. */
  function refresh(): Promise<void> {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  }

  const mayAsk = () => reading !== undefined || clock.monotonic() - triedAt >= cooldownMs;

  return async (header, token) => {
    if (age() > FRESH_MS && mayAsk()) {
      const asked = refresh().catch((error: unknown) => {
        failure = error;
      });
      if (age() > USABLE_MS) await asked;
    }
    if (keys === undefined || age() > USABLE_MS) throw unreachable(issuer, failure);
    try {
      return await keys.resolve(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey) || !mayAsk()) throw error;
      // A key that was made since.
      await refresh().catch((cause: unknown) => {
        throw unreachable(issuer, cause);
      });
      return keys.resolve(header, token);
    }
  };
}

async function discover(issuer: string): Promise<string> {
  const url = `${issuer.replace(/\/+$/, "")}/.well-known/openid-configuration`;
  const response = await fetch(url, { redirect: "error", signal: AbortSignal.timeout(PATIENCE_MS) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${url} answers HTTP ${response.status}`);
  if (text.length > LONGEST_DOCUMENT) throw new Error(`${url} answers ${text.length} characters`);
  const found = JSON.parse(text) as { issuer?: unknown; jwks_uri?: unknown };
  if (found.issuer !== issuer) throw new Error(`${url} is of the issuer ${JSON.stringify(found.issuer)}`);
  if (typeof found.jwks_uri !== "string") throw new Error(`${url} names no jwks_uri`);
  return found.jwks_uri;
}

function unreachable(issuer: string, cause?: unknown): Problem {
  const reason = cause === undefined ? "" : `: ${messageOf(cause)}`;
  return new Problem("issuer-unreachable", "The issuer's keys cannot be read, so tokens cannot be judged", {
    headers: { "retry-after": "5" },
    cause: new Error(`${issuer}${reason}`, { cause }),
  });
}

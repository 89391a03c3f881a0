import type { Clock } from "../kernel/clock.ts";
import { showId } from "../kernel/ids.ts";
import type { Queryable } from "../store/database.ts";
import { type ApiKeyRow, findApiKey } from "../store/reads/keys.ts";
import type { Caller, Role } from "./context.ts";
import type { KeyUse } from "./identity/key-use.ts";
import type { Tokens } from "./identity/tokens.ts";
import { trustedRows } from "./identity/trusted-rows.ts";
import { readKey, sameHash } from "./keys.ts";
import { Problem } from "./problems/problem.ts";
import type { Standing } from "./sessions/session.ts";

/** Who is calling. */
export type Authenticator = {
  /** Throws `unauthenticated` unless the credential, as it stood in an `Authorization` header, is good now. */
  authenticate(credential: string | undefined): Promise<Caller>;
  /** For a session that a credential once opened: throws `unauthenticated` when it is not good any more. */
  authenticateAgain(standing: Standing): Promise<Caller>;
};

export function createAuthenticator(deps: {
  db: Queryable;
  clock: Clock;
  keyUse: KeyUse;
  /** Undefined: this installation trusts no issuer, and takes keys only. */
  tokens: Tokens | undefined;
}): Authenticator {
  const rowOf = trustedRows<ApiKeyRow>(deps.clock, (prefix) => findApiKey(deps.db, prefix));

  function callerOfKey(row: ApiKeyRow): Caller {
    deps.keyUse.note(row.id);
    return callerOf(row);
  }

  return {
    async authenticate(credential) {
      if (credential === undefined) throw unauthenticated("Send `Authorization: Bearer <API key>`");
      if (looksLikeToken(credential)) {
        if (deps.tokens !== undefined) return deps.tokens.verify(credential);
        throw unauthenticated("This installation trusts no issuer of tokens; send an API key");
      }
      const read = readKey(credential);
      const row = read && (await rowOf(read.prefix));
      // One sentence for every reason: a guesser learns nothing from it.
      if (
        read === undefined ||
        row === undefined ||
        !sameHash(row.secretHash, read.secretHash) ||
        !isLive(row, deps.clock)
      ) {
        throw unauthenticated("The API key is unknown, expired or revoked");
      }
      return callerOfKey(row);
    },
    async authenticateAgain(standing) {
      if (standing.kind === "token") {
        if (deps.tokens !== undefined) return deps.tokens.trustAgain(standing);
        throw unauthenticated("This installation trusts no issuer of tokens any more");
      }
      const row = await rowOf(standing.prefix);
      if (row === undefined || !isLive(row, deps.clock)) {
        throw unauthenticated("The API key is unknown, expired or revoked");
      }
      return callerOfKey(row);
    },
  };
}

/** Two dots, and not the beginning of our own keys. */
function looksLikeToken(credential: string): boolean {
  return !credential.startsWith("pk_") && credential.split(".").length === 3;
}

/** Throws `forbidden` unless the caller's role is one of `roles`. */
export function authorize(caller: Caller, roles: readonly Role[]): void {
  if (!roles.includes(caller.role)) {
    throw new Problem(
      "forbidden",
      `This needs one of the roles ${roles.join(", ")}; the caller's role is ${caller.role}`,
      {
        more: { role: caller.role, allowedRoles: roles },
      },
    );
  }
}

/** What an `Authorization` header brings: `Bearer <credential>`, or `Basic` with it as the password, for browsers. */
export function credentialFromAuthorization(header: string | undefined): string | undefined {
  const [scheme = "", value = ""] = (header ?? "").trim().split(/ +/, 2);
  if (scheme.toLowerCase() === "bearer") return value;
  if (scheme.toLowerCase() !== "basic") return undefined;
  const decoded = Buffer.from(value, "base64").toString();
  return decoded.slice(decoded.indexOf(":") + 1);
}

function isLive(row: ApiKeyRow, clock: Clock): boolean {
  return row.revokedAt === null && (row.expiresAt === null || row.expiresAt > clock.now());
}

function callerOf(row: ApiKeyRow): Caller {
  return {
    tenantId: row.tenantId,
    homeTenantId: row.tenantId,
    tenantName: row.tenantName,
    tenantStatus: row.tenantStatus,
    allowedJobs: row.allowedJobs,
    outbound: row.outbound,
    credential: { kind: "key", keyId: row.id, prefix: row.prefix, label: row.label, endsAt: row.expiresAt },
    role: row.role,
    actingFor: false,
    actor: showId("key", row.id),
  };
}

function unauthenticated(detail: string): Problem {
  return new Problem("unauthenticated", detail, { headers: { "www-authenticate": 'Bearer realm="punctual"' } });
}

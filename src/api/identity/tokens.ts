import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose";
import type { Clock } from "../../kernel/clock.ts";
import { readId, showId } from "../../kernel/ids.ts";
import type { Queryable } from "../../store/database.ts";
import { findTenant, type TenantView } from "../../store/reads/tenants/tenants.ts";
import type { Caller } from "../context.ts";
import { Problem } from "../problems/problem.ts";
import type { Standing } from "../sessions/session.ts";
import { type ClaimNames, claimOf, roleOf } from "./claims.ts";
import { keysOf } from "./issuer.ts";
import { boundsOf } from "./tenant-bounds.ts";
import { trustedRows } from "./trusted-rows.ts";

export type TokenConfig = ClaimNames & {
  issuer: string;
  audience: string;
  /** Undefined: the issuer's discovery document says it. */
  jwksUrl: string | undefined;
  /** How often unknown key ids make us ask the issuer, at most (ms). */
  cooldownMs?: number;
};

/** Signatures that only the issuer can make: with a shared secret, or without any, everybody could. */
const ALGORITHMS = [
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
];
/** How far the issuer's clock may be from ours. */
const TOLERANCE_S = 30;
/** Of OpenID Connect, and an actor's length in every history. */
const LONGEST_SUBJECT = 255;
const LONGEST_TOKEN = 12_000;
type TokenStanding = Extract<Standing, { kind: "token" }>;

export type Tokens = {
  /** Who a token speaks for. Throws `unauthenticated`, `forbidden` (which claim is wrong) and `issuer-unreachable`. */
  verify(token: string): Promise<Caller>;
  /** The same of a token that was verified when a session began with it: the tenant is what it is now. */
  trustAgain(standing: TokenStanding): Promise<Caller>;
};

/** Tokens (JWT) of the one OpenID Connect issuer that this installation trusts. */
export function createTokens(deps: { config: TokenConfig; db: Queryable; clock: Clock }): Tokens {
  const { config, db, clock } = deps;
  const keys = keysOf({ ...config, clock });
  // Not by name: renamed, it would be another's, and the tokens that are about with it.
  const findById = trustedRows<TenantView>(clock, async (claim) => {
    const id = readId("ten", claim);
    return id === undefined ? undefined : findTenant(db, id);
  });

  async function tenantOf(claim: unknown): Promise<TenantView> {
    const { tenantClaim } = config;
    if (typeof claim !== "string" || claim === "") {
      throw new Problem(
        "forbidden",
        `The token's claim "${tenantClaim}" is missing: it has the id of a tenant, such as ten_…`,
      );
    }
    const tenant = await findById(claim);
    if (tenant === undefined) {
      const found = JSON.stringify(claim.slice(0, 100));
      throw new Problem(
        "forbidden",
        `The token's claim "${tenantClaim}" is no id of a tenant of this installation: ${found}`,
      );
    }
    return tenant;
  }

  function callerOf(
    { subject, role, endsAt }: Pick<TokenStanding, "subject" | "role" | "endsAt">,
    tenant: TenantView,
  ): Caller {
    return {
      ...boundsOf(tenant),
      homeTenantId: tenant.id,
      credential: { kind: "token", issuer: config.issuer, subject, endsAt },
      role,
      actingFor: false,
      actor: `oidc:${subject}`,
    };
  }

  return {
    async verify(token) {
      const claims = await read(token, keys, config, clock);
      const subject = subjectOf(claims);
      const role = roleOf(claims, config);
      const tenant = await tenantOf(claimOf(claims, config.tenantClaim));
      if (role === undefined) {
        throw new Problem("forbidden", `The token's claim "${config.roleClaim}" gives no role here`);
      }
      return callerOf({ subject, role, endsAt: claims.exp! * 1000 }, tenant);
    },
    async trustAgain(standing) {
      if (standing.issuer !== config.issuer) throw badToken("is of an issuer that is not trusted any more");
      return callerOf(standing, await tenantOf(showId("ten", standing.tenantId)));
    },
  };
}

async function read(token: string, keys: JWTVerifyGetKey, config: TokenConfig, clock: Clock): Promise<JWTPayload> {
  if (token.length > LONGEST_TOKEN) throw badToken(`has more than ${LONGEST_TOKEN} characters`);
  try {
    const { payload } = await jwtVerify(token, keys, {
      issuer: config.issuer,
      audience: config.audience,
      algorithms: ALGORITHMS,
      requiredClaims: ["exp", "sub"],
      clockTolerance: TOLERANCE_S,
      currentDate: new Date(clock.now()),
    });
    return payload;
  } catch (error) {
    if (error instanceof Problem) throw error;
    if (error instanceof errors.JWTExpired) throw badToken("is expired");
    // The signature was good: what is wrong with a claim may be said.
    if (error instanceof errors.JWTClaimValidationFailed) {
      throw badToken(`is refused: ${error.message}`);
    }
    if (error instanceof errors.JOSEAlgNotAllowed)
      throw badToken(`is not signed in one of these ways: ${ALGORITHMS.join(", ")}`);
    if (error instanceof errors.JOSEError || error instanceof TypeError) {
      throw badToken("is not one that the issuer of this installation has signed");
    }
    throw error;
  }
}

/** Actors are written down and shown: what cannot be, is nobody. */
function subjectOf({ sub = "" }: JWTPayload): string {
  if (sub !== "" && sub.length <= LONGEST_SUBJECT && /^[\x20-\x7e]+$/.test(sub)) return sub;
  throw badToken(`has a "sub" that is not 1 to ${LONGEST_SUBJECT} ASCII characters`);
}

function badToken(what: string): Problem {
  return new Problem("unauthenticated", `The token ${what}`, {
    headers: { "www-authenticate": 'Bearer realm="punctual", error="invalid_token"' },
  });
}

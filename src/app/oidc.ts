import { z } from "zod";
import { ROLES } from "../api/context.ts";
import { readRoleMap } from "../api/identity/claims.ts";
import type { TokenConfig } from "../api/identity/tokens.ts";
import type { Config } from "./config.ts";

/** The issuer of tokens: what is configured of it, and what the API needs. */

/** Of claims in tokens; dots lead into objects. */
const claimName = (fallback: string) =>
  z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, { error: "allowed: 1 to 200 visible ASCII characters" })
    .default(fallback);

export const oidcSettings = {
  PUNCTUAL_OIDC_ISSUER: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("The OpenID Connect issuer whose tokens the API takes beside keys, as in their `iss`"),
  PUNCTUAL_OIDC_AUDIENCE: z
    .string()
    .min(1)
    .optional()
    .describe("What stands for this installation in the `aud` of its tokens; required with PUNCTUAL_OIDC_ISSUER"),
  PUNCTUAL_OIDC_JWKS_URL: z
    .url({ protocol: /^https?$/ })
    .optional()
    .describe("Where the issuer publishes its keys (default: what its discovery document says)"),
  PUNCTUAL_OIDC_TENANT_CLAIM: claimName("punctual_tenant").describe("The claim that has the id of a tenant (`ten_…`)"),
  PUNCTUAL_OIDC_ROLE_CLAIM: claimName("punctual_role").describe(
    "The claim with the role, or with a list of roles or groups, of which the highest counts; dots lead into objects",
  ),
  PUNCTUAL_OIDC_ROLES: z
    .string()
    .optional()
    .transform((text, issues) => {
      const roles = text === undefined ? undefined : readRoleMap(text);
      if (text !== undefined && roles === undefined) {
        const error = `allowed: such as ops=operator,staff=viewer, with the roles ${ROLES.join(", ")}`;
        issues.addIssue({ code: "custom", message: error });
      }
      return roles;
    })
    .describe(
      "Which values of the role claim give which role, such as `ops=operator,staff=viewer`; without it values are roles themselves, all but `admin`",
    ),
};

type Configured = Pick<Config, keyof typeof oidcSettings>;

export function findOidcFault(config: Configured): { key: string; what: string } | undefined {
  const { PUNCTUAL_OIDC_ISSUER: issuer, PUNCTUAL_OIDC_AUDIENCE: audience } = config;
  if ((issuer === undefined) === (audience === undefined)) return undefined;
  const key = issuer === undefined ? "PUNCTUAL_OIDC_ISSUER" : "PUNCTUAL_OIDC_AUDIENCE";
  return { key, what: "is not set; an issuer and an audience belong together" };
}

/** Undefined: no issuer is trusted. */
export function oidcOf(config: Configured): TokenConfig | undefined {
  const { PUNCTUAL_OIDC_ISSUER: issuer, PUNCTUAL_OIDC_AUDIENCE: audience } = config;
  if (issuer === undefined || audience === undefined) return undefined;
  return {
    issuer,
    audience,
    jwksUrl: config.PUNCTUAL_OIDC_JWKS_URL,
    tenantClaim: config.PUNCTUAL_OIDC_TENANT_CLAIM,
    roleClaim: config.PUNCTUAL_OIDC_ROLE_CLAIM,
    roles: config.PUNCTUAL_OIDC_ROLES,
  };
}

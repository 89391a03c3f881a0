import { z } from "zod";
import { showId } from "../../../kernel/ids.ts";
import { ROLES } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";

export const getMeRoute = defineRoute({
  method: "get",
  path: "/v1/me",
  tag: "service",
  summary: "Say who this API key or token is",
  roles: ROLES,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "Tenant, credential and role",
    schema: z.strictObject({
      tenant: z.strictObject({ tenantId: z.string(), name: z.string(), status: z.string() }),
      key: z
        .strictObject({ keyId: z.string(), prefix: z.string(), label: z.string() })
        .nullable()
        .describe("The API key the call was made with; null for a token"),
      token: z
        .strictObject({ issuer: z.string(), subject: z.string() })
        .nullable()
        .describe("Of the token the call was made with; null for an API key"),
      role: z.enum(ROLES),
      actingFor: z.boolean().describe("Whether an admin acts for the tenant, by `Punctual-Tenant`"),
    }),
  },
  problems: [],
  handle(_call, _context, caller) {
    const { credential } = caller;
    return {
      kind: "ok",
      body: {
        tenant: { tenantId: showId("ten", caller.tenantId), name: caller.tenantName, status: caller.tenantStatus },
        key:
          credential.kind === "key"
            ? {
                keyId: showId("key", credential.keyId),
                prefix: `pk_${credential.prefix}`,
                label: credential.label,
              }
            : null,
        token: credential.kind === "token" ? { issuer: credential.issuer, subject: credential.subject } : null,
        role: caller.role,
        actingFor: caller.actingFor,
      },
    };
  },
});

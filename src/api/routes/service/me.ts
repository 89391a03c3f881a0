import { z } from "zod";
import { showId } from "../../../kernel/ids.ts";
import { ROLES } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";

export const getMeRoute = defineRoute({
  method: "get",
  path: "/v1/me",
  tag: "service",
  summary: "Say who this API key is",
  roles: ROLES,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "Tenant, key and role",
    schema: z.strictObject({
      tenant: z.strictObject({ tenantId: z.string(), name: z.string(), status: z.string() }),
      key: z.strictObject({ keyId: z.string(), prefix: z.string(), label: z.string() }),
      role: z.enum(ROLES),
    }),
  },
  problems: [],
  handle(_call, _context, caller) {
    return {
      kind: "ok",
      body: {
        tenant: { tenantId: showId("ten", caller.tenantId), name: caller.tenantName, status: caller.tenantStatus },
        key: { keyId: showId("key", caller.keyId), prefix: `pk_${caller.keyPrefix}`, label: caller.keyLabel },
        role: caller.role,
      },
    };
  },
});

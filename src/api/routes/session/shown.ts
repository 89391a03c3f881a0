import { z } from "zod";
import { showId } from "../../../kernel/ids.ts";
import { type ApiContext, type Caller, ROLES } from "../../context.ts";
import { showInstant } from "../../present/instant.ts";
import type { Session } from "../../sessions/session.ts";

export const sessionSchema = z.strictObject({
  tenant: z.strictObject({ tenantId: z.string(), name: z.string() }),
  role: z.enum(ROLES),
  actor: z.string().describe("How this caller is called in histories"),
  label: z.string().describe("What people call the credential: the label of a key, the subject of a token"),
  endsAt: z.iso
    .datetime()
    .nullable()
    .describe("When the session ends at the latest; null for a call without a session"),
  csrfToken: z
    .string()
    .nullable()
    .describe("`X-CSRF-Token` of the session's calls that are not GET; null for a call without a session"),
});

export function showSession(context: ApiContext, caller: Caller, session: Session | undefined) {
  const { credential } = caller;
  return {
    tenant: { tenantId: showId("ten", caller.tenantId), name: caller.tenantName },
    role: caller.role,
    actor: caller.actor,
    label: credential.kind === "key" ? credential.label : credential.subject,
    endsAt: session === undefined ? null : showInstant(session.endsAt),
    csrfToken: session === undefined ? null : context.entrance.sessions.csrfToken(session),
  };
}

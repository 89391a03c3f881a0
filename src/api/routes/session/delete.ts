import { z } from "zod";
import { ROLES } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { clearCookie } from "../../sessions/cookie.ts";

export const deleteSessionRoute = defineRoute({
  method: "delete",
  path: "/v1/session",
  tag: "service",
  summary: "End the session in this browser",
  description:
    "The browser forgets the cookie. A copy of it that somebody took before stays good until `endsAt`: revoke the key where that is feared.",
  roles: ROLES,
  params: noFields,
  query: noFields,
  answer: {
    kind: "ok",
    description: "Whether there was a session",
    schema: z.strictObject({ ended: z.boolean() }),
  },
  // People of a suspended tenant may leave.
  onlyReads: true,
  problems: ["cross-origin", "csrf-token"],
  handle(call) {
    return {
      kind: "ok",
      headers: { "set-cookie": clearCookie(call.secure) },
      body: { ended: call.session !== undefined },
    };
  },
});

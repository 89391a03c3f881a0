import { ROLES } from "../../context.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { sessionSchema, showSession } from "./shown.ts";

export const getSessionRoute = defineRoute({
  method: "get",
  path: "/v1/session",
  tag: "service",
  summary: "Say whose session this is, until when, and its CSRF token",
  roles: ROLES,
  params: noFields,
  query: noFields,
  answer: { kind: "ok", description: "The session of the cookie that was sent", schema: sessionSchema },
  problems: [],
  handle(call, context, caller) {
    return { kind: "ok", body: showSession(context, caller, call.session) };
  },
});

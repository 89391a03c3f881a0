import { z } from "zod";
import { credentialFromAuthorization } from "../../auth.ts";
import { noFields } from "../../input/no-fields.ts";
import { defineRoute } from "../../route.ts";
import { setCookie } from "../../sessions/cookie.ts";
import { isFromBrowser, refuseOtherOrigins } from "../../sessions/same-origin.ts";
import { sessionSchema, showSession } from "./shown.ts";

export const createSessionRoute = defineRoute({
  method: "post",
  path: "/v1/session",
  tag: "service",
  summary: "Begin a session in a browser",
  description:
    "Takes the credential of `Authorization`, or a key in the body, and sets a cookie that stands for it: for eight hours, never longer than the credential is good, and not a moment after it was revoked (5 s at most). Calls by cookie that are not GET need `X-CSRF-Token` and have to come from a page of this installation.",
  roles: "everybody",
  params: noFields,
  query: noFields,
  body: z.strictObject({
    key: z.string().max(200).optional().describe("An API key, where no `Authorization` is sent"),
  }),
  example: { key: "pk_0123456789ab_…" },
  answer: { kind: "created", description: "The session, which the cookie now stands for", schema: sessionSchema },
  problems: ["unauthenticated", "forbidden", "cross-origin", "issuer-unreachable", "too-many-failures"],
  async handle(call, context) {
    // Who could make a browser begin somebody else's session would be told all that is done in it.
    if (isFromBrowser(call)) refuseOtherOrigins(call, context.publicUrl());
    const credential = credentialFromAuthorization(call.header("authorization")) ?? call.body.key;
    const { caller, session, cookie } = await context.entrance.begin(call, credential);
    return {
      kind: "created",
      headers: { "set-cookie": setCookie(cookie, session.endsAt - context.clock.now(), call.secure) },
      body: showSession(context, caller, session),
    };
  },
});

import { createHmac, randomBytes } from "node:crypto";
import { z } from "zod";
import type { Clock, Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { ROLES, type Role } from "../context.ts";
import { sameHash } from "../keys.ts";

/**
 * What a session stands on. It names the credential and holds no secret: who has read the cookie cannot call as a key. Of a
 * token, which nobody keeps, it holds what the token said.
 */
export type Standing =
  | { kind: "key"; prefix: string }
  | { kind: "token"; issuer: string; subject: string; tenantId: Uuid; role: Role; endsAt: Instant };

export type Session = { id: string; endsAt: Instant; standing: Standing };

/**
 * Sessions of browsers, kept by the browser: a signed cookie, no table. Whether the credential is still good is asked at
 * each call, so that a revoked key ends its sessions. Signing out makes the browser forget; a copy that somebody took
 * before stays good until the session's end or until the credential is revoked, hence the short life.
 */
export type Sessions = {
  /** A fresh id each time, so that nobody knows a session's before it has begun. */
  begin(standing: Standing, credentialEndsAt: Instant | null): { session: Session; cookie: string };
  /** The session of a cookie that we signed and that has not ended. */
  read(cookie: string | undefined): Session | undefined;
  /** What a page of ours sends along to show that it could read an answer of ours. */
  csrfToken(session: Session): string;
  isCsrfToken(session: Session, token: string | undefined): boolean;
};

const LONGEST_MS = 8 * 3_600_000;
const LONGEST_COOKIE = 3_000;
const MAC = /^[\w-]{43}$/;

const payloadSchema = z.strictObject({
  id: z.string().regex(/^[\w-]{22}$/),
  endsAt: z.int(),
  standing: z.discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("key"), prefix: z.string().regex(/^[0-9a-f]{12}$/) }),
    z.strictObject({
      kind: z.literal("token"),
      issuer: z.string(),
      subject: z.string(),
      tenantId: z.uuid(),
      role: z.enum(ROLES),
      endsAt: z.int(),
    }),
  ]),
});

export function createSessions(deps: { secret: string | Buffer; clock: Clock }): Sessions {
  const mac = (use: "session" | "csrf", text: string) =>
    createHmac("sha256", deps.secret).update(`${use}\n${text}`).digest("base64url");
  const matches = (given: string, wanted: string) =>
    MAC.test(given) && sameHash(Buffer.from(given), Buffer.from(wanted));
  const csrfToken = (session: Session) => mac("csrf", session.id);

  return {
    begin(standing, credentialEndsAt) {
      const endsAt = Math.floor(Math.min(deps.clock.now() + LONGEST_MS, credentialEndsAt ?? Number.POSITIVE_INFINITY));
      const session: Session = { id: randomBytes(16).toString("base64url"), endsAt, standing };
      const payload = Buffer.from(JSON.stringify(session)).toString("base64url");
      return { session, cookie: `${payload}.${mac("session", payload)}` };
    },
    read(cookie = "") {
      const [payload = "", signature = "", ...more] = cookie.length > LONGEST_COOKIE ? [] : cookie.split(".");
      if (more.length > 0 || !matches(signature, mac("session", payload))) return undefined;
      const session = payloadSchema.safeParse(JSON.parse(Buffer.from(payload, "base64url").toString()));
      return session.success && session.data.endsAt > deps.clock.now() ? session.data : undefined;
    },
    csrfToken,
    isCsrfToken: (session, token) => token !== undefined && matches(token, csrfToken(session)),
  };
}

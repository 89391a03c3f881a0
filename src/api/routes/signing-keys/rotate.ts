import { z } from "zod";
import { rotateSigningKey } from "../../../authority/secrets/rotate-signing-key.ts";
import { mintSigningSecret } from "../../../domain/secrets/signing-secret.ts";
import { ROTATE_BODY } from "../../examples/identity.ts";
import { noFields } from "../../input/no-fields.ts";
import { overlapFields } from "../../input/overlap.ts";
import { presentSigningKey, signingKeySchema } from "../../present/webhooks/signing-key.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS } from "../api-keys/key-ref.ts";
import { getSigningKeyId, noSuchSigningKey, SHOWN_ONCE, signingKeyParams, tooManySigningKeys } from "./key-ref.ts";

export const rotateSigningKeyRoute = defineRoute({
  method: "post",
  path: "/v1/signing-keys/{signingKey}/rotate",
  tag: "signing-keys",
  summary: "Put a new signing key in the place of one; it is shown this once",
  description: "Both sign until the overlap is over: receivers that know either of them are right meanwhile.",
  roles: KEEPERS,
  params: signingKeyParams,
  query: noFields,
  body: overlapFields("signs on"),
  example: ROTATE_BODY,
  answer: {
    kind: "created",
    description: "The new key itself, what is kept of it, and the old one as it is now",
    schema: z.strictObject({ key: SHOWN_ONCE, signingKey: signingKeySchema, replaced: signingKeySchema }),
  },
  problems: ["not-found", "key-not-current", "too-many-signing-keys", "secrets-unavailable"],
  async handle({ params, body }, context, { tenantId, actor }) {
    const keyId = getSigningKeyId(params.signingKey);
    const secret = mintSigningSecret();
    const overlapMs = body.overlapSeconds * 1000;
    const outcome = await rotateSigningKey(context.authority, { tenantId, actor, keyId, secret, overlapMs });
    const nowAt = context.clock.now();
    switch (outcome.kind) {
      case "not-found":
        throw noSuchSigningKey(params.signingKey);
      case "too-many":
        throw tooManySigningKeys(outcome.used);
      case "not-current": {
        const { state, replacedBy } = presentSigningKey(outcome.key, nowAt);
        const by = replacedBy === null ? "" : ` by ${replacedBy}`;
        throw new Problem("key-not-current", `The key is ${outcome.why}${by}`, { more: { state, replacedBy } });
      }
      case "rotated": {
        const [signingKey, replaced] = [outcome.key, outcome.replaced].map((key) => presentSigningKey(key, nowAt));
        return { kind: "created", body: { key: secret, signingKey, replaced } };
      }
    }
  },
});

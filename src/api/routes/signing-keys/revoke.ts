import { z } from "zod";
import { revokeSigningKey } from "../../../authority/secrets/revoke-signing-key.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentSigningKey, signingKeySchema } from "../../present/webhooks/signing-key.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS } from "../api-keys/key-ref.ts";
import { getSigningKeyId, noSuchSigningKey, signingKeyParams } from "./key-ref.ts";

export const revokeSigningKeyRoute = defineRoute({
  method: "delete",
  path: "/v1/signing-keys/{signingKey}",
  tag: "signing-keys",
  summary: "Revoke a signing key",
  description:
    "It signs nothing more after 5 seconds, and is kept nowhere. After the last one, calls leave unsigned. Revoking a revoked key changes nothing.",
  roles: KEEPERS,
  params: signingKeyParams,
  query: noFields,
  answer: {
    kind: "ok",
    description: "The revoked key",
    schema: z.strictObject({ signingKey: signingKeySchema, changed: z.boolean() }),
  },
  problems: ["not-found"],
  async handle({ params }, context, { tenantId, actor }) {
    const keyId = getSigningKeyId(params.signingKey);
    const outcome = await revokeSigningKey(context.authority, { tenantId, actor, keyId });
    if (outcome.kind === "not-found") throw noSuchSigningKey(params.signingKey);
    const signingKey = presentSigningKey(outcome.key, context.clock.now());
    return { kind: "ok", body: { signingKey, changed: outcome.kind === "revoked" } };
  },
});

import { z } from "zod";
import { createSigningKey } from "../../../authority/secrets/create-signing-key.ts";
import { mintSigningSecret } from "../../../domain/secrets/signing-secret.ts";
import { showId } from "../../../kernel/ids.ts";
import { SIGNING_KEY_BODY } from "../../examples/webhooks.ts";
import { noSuchTenant } from "../../identity/acting.ts";
import { noFields } from "../../input/no-fields.ts";
import { presentSigningKey, signingKeySchema } from "../../present/webhooks/signing-key.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS } from "../api-keys/key-ref.ts";
import { SHOWN_ONCE, tooManySigningKeys } from "./key-ref.ts";

export const createSigningKeyRoute = defineRoute({
  method: "post",
  path: "/v1/signing-keys",
  tag: "signing-keys",
  summary: "Make a key that signs what leaves for others; it is shown this once",
  description:
    "From then on, within 5 seconds, HTTP jobs and webhooks of the tenant carry one more signature. Each call makes another key.",
  roles: KEEPERS,
  params: noFields,
  query: noFields,
  body: z.strictObject({ label: z.string().trim().min(1).max(200).describe("What it is for, for people") }),
  example: SIGNING_KEY_BODY,
  answer: {
    kind: "created",
    description: "The key itself, and what is kept of it",
    schema: z.strictObject({ key: SHOWN_ONCE, signingKey: signingKeySchema }),
  },
  problems: ["too-many-signing-keys", "secrets-unavailable"],
  async handle({ body }, context, { tenantId, actor }) {
    const secret = mintSigningSecret();
    const outcome = await createSigningKey(context.authority, { tenantId, actor, label: body.label, secret });
    if (outcome.kind === "no-tenant") throw noSuchTenant(showId("ten", tenantId));
    if (outcome.kind === "too-many") throw tooManySigningKeys(outcome.used);
    return { kind: "created", body: { key: secret, signingKey: presentSigningKey(outcome.key, context.clock.now()) } };
  },
});

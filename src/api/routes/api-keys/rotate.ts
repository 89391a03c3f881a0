import { z } from "zod";
import { rotateApiKey } from "../../../authority/tenants/rotate-api-key.ts";
import { showId } from "../../../kernel/ids.ts";
import { ROTATE_BODY } from "../../examples/identity.ts";
import { noFields } from "../../input/no-fields.ts";
import { overlapFields } from "../../input/overlap.ts";
import { mintKey } from "../../keys.ts";
import { apiKeySchema, presentApiKey } from "../../present/api-key.ts";
import { Problem } from "../../problems/problem.ts";
import { defineRoute } from "../../route.ts";
import { KEEPERS, keyParams, keyToChange, noSuchKey } from "./key-ref.ts";

export const rotateApiKeyRoute = defineRoute({
  method: "post",
  path: "/v1/api-keys/{key}/rotate",
  tag: "api-keys",
  summary: "Put a new key in the place of one; it is shown this once",
  description:
    "Same role, same label, and as long a life as the old one was made for. The old key works on for the overlap, at most until its own end.",
  roles: KEEPERS,
  params: keyParams,
  query: noFields,
  body: overlapFields("works on"),
  example: ROTATE_BODY,
  answer: {
    kind: "created",
    description: "The new key itself, what is kept of it, and the old one as it is now",
    schema: z.strictObject({
      key: z.string().describe("The whole key. Nobody can show it again"),
      apiKey: apiKeySchema,
      replaced: apiKeySchema,
    }),
  },
  problems: ["not-found", "key-not-current"],
  async handle({ params, body }, context, caller) {
    const { id: keyId } = await keyToChange(context, caller, params.key);
    const minted = mintKey();
    const outcome = await rotateApiKey(context.authority, {
      tenantId: caller.tenantId,
      actor: caller.actor,
      keyId,
      prefix: minted.prefix,
      secretHash: minted.secretHash,
      overlapMs: body.overlapSeconds * 1000,
    });
    if (outcome.kind === "not-found") throw noSuchKey(params.key);
    const nowAt = context.clock.now();
    if (outcome.kind === "not-current") {
      const { state, replacedBy } = presentApiKey(outcome.key, nowAt);
      const by = replacedBy === null ? "" : ` by ${replacedBy}`;
      throw new Problem("key-not-current", `The key is ${outcome.why}${by}`, { more: { state, replacedBy } });
    }
    return {
      kind: "created",
      headers: { location: `/v1/api-keys/${showId("key", outcome.key.id)}` },
      body: {
        key: minted.key,
        apiKey: presentApiKey(outcome.key, nowAt),
        replaced: presentApiKey(outcome.replaced, nowAt),
      },
    };
  },
});

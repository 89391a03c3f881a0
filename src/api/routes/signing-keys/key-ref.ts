import { z } from "zod";
import { MOST_SIGNING_KEYS } from "../../../domain/secrets/signing-secret.ts";
import { readId, type Uuid } from "../../../kernel/ids.ts";
import { Problem } from "../../problems/problem.ts";

export const signingKeyParams = z.strictObject({
  signingKey: z.string().max(100).describe("Signing key id, `sgk_…`; never the key itself"),
});

export function noSuchSigningKey(ref: string): Problem {
  const shown = ref.startsWith("whsec_") ? "whsec_…" : ref.slice(0, 100);
  return new Problem("not-found", `There is no signing key ${JSON.stringify(shown)}`);
}

export function getSigningKeyId(ref: string): Uuid {
  const id = readId("sgk", ref);
  if (id === undefined) throw noSuchSigningKey(ref);
  return id;
}

export function tooManySigningKeys(used: number): Problem {
  return new Problem("too-many-signing-keys", `${used} keys sign for this tenant; ${MOST_SIGNING_KEYS} may`, {
    more: { limit: MOST_SIGNING_KEYS, used },
  });
}

export const SHOWN_ONCE = z.string().describe("The whole key, `whsec_…`, for receivers. Nobody can show it again");

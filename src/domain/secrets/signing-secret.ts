import { randomBytes } from "node:crypto";

/** The key of a tenant's signatures as Standard Webhooks writes it: `whsec_` and base64. */
const PREFIX = "whsec_";
const BYTES = 32;

/** Each of them is one more signature in every call that leaves. */
export const MOST_SIGNING_KEYS = 5;

export function mintSigningSecret(): string {
  return PREFIX + randomBytes(BYTES).toString("base64");
}

export function bytesOfSecret(secret: string): Uint8Array {
  return Buffer.from(secret.slice(PREFIX.length), "base64");
}

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";

/**
 * API keys look like `pk_<prefix>_<secret>`. The prefix finds the row and may be shown; the secret is 32 random bytes, so
 * one round of SHA-256 is enough: there is nothing to guess.
 */
const KEY = /^pk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})$/;

export type MintedKey = {
  /** The whole key: shown once, never stored. */
  key: string;
  prefix: string;
  secretHash: Buffer;
};

export function mintKey(): MintedKey {
  const prefix = randomBytes(6).toString("hex");
  const secret = randomBytes(32).toString("base64url");
  return { key: `pk_${prefix}_${secret}`, prefix, secretHash: hashSecret(secret) };
}

/** The two halves of a key, or undefined when `text` is no key at all. */
export function readKey(text: string): { prefix: string; secretHash: Buffer } | undefined {
  const match = KEY.exec(text);
  return match ? { prefix: match[1]!, secretHash: hashSecret(match[2]!) } : undefined;
}

export function sameHash(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function hashSecret(secret: string): Buffer {
  return createHash("sha256").update(secret).digest();
}

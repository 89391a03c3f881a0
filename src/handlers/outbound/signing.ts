import { createHmac } from "node:crypto";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";

/** A tenant's signing keys as they are used: raw bytes, the newest first; none: its calls go out unsigned. */
export type SigningKeys = { keysOf(tenantId: Uuid): Promise<readonly Uint8Array[]> };

/** What is signed: the bytes that are sent, under an id that stays the same when they are sent again. */
export type Signed = { id: string; atMs: Instant; body: string | Uint8Array };

/**
 * The headers of Standard Webhooks: one signature for each key, so that during a rotation receivers with either key are
 * right. Without keys there are none. We sign with node:crypto, since the reference library makes text of the body first:
 * not every body is text.
 */
export function signedHeaders(keys: readonly Uint8Array[], { id, atMs, body }: Signed): Record<string, string> {
  if (keys.length === 0) return {};
  const timestamp = String(Math.floor(atMs / 1000));
  const signatureOf = (key: Uint8Array) =>
    createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": keys.map((key) => `v1,${signatureOf(key)}`).join(" "),
  };
}

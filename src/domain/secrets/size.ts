import type { Json } from "../definition.ts";
import { findSealed, SEALED } from "./forms.ts";
import { plainBytesOf } from "./sealing.ts";

/** How many bytes of JSON a stored payload is with its secrets as they were sent: what people count, and quotas with them. */
export function bytesAsSent(stored: Json): number {
  return findSealed(stored).reduce(
    (bytes, { text }) => bytes - bytesOf({ [SEALED]: text }) + plainBytesOf(text),
    bytesOf(stored),
  );
}

export function bytesOf(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

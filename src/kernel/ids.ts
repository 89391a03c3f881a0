import { hash, randomBytes } from "node:crypto";
import type { Instant } from "./clock.ts";

/**
 * Identifiers are UUIDv8: 48 bits of epoch ms, 10 bits of bucket, 64 bits of hash or chance.
 *
 *   byte 0-5  instant in ms
 *   byte 6    version (high nibble) | 2 bits of tail | bucket bits 9-8
 *   byte 7    bucket bits 7-0
 *   byte 8    variant (2 bits) | 6 bits of tail
 *   byte 9-15 56 bits of tail
 *
 * So ids sort by time, and an id alone names its bucket and its partition; SQL reads the same bytes.
 */
export type Uuid = string;

/** The nil UUID: none of ours, and less than any. */
export const NIL_ID: Uuid = "00000000-0000-0000-0000-000000000000";

export const BUCKETS = 1024;
export type IdKind = "sch" | "run" | "ten" | "key" | "wrk" | "obj" | "op" | "req" | "clm" | "eff" | "sgk" | "whk";

function assemble(at: Instant, bucket: number, tail: Uint8Array): Uuid {
  if (!Number.isInteger(at) || at < 0 || at >= 2 ** 48) {
    throw new RangeError(`an identifier's instant is whole ms in [0, 2^48), found ${at}`);
  }
  const bytes = Buffer.alloc(16);
  bytes.writeUIntBE(at, 0, 6);
  bytes[6] = 0x80 | ((tail[0]! & 0b11) << 2) | (bucket >> 8);
  bytes[7] = bucket & 0xff;
  bytes[8] = 0x80 | ((tail[0]! >> 2) & 0x3f);
  bytes.set(tail.subarray(1, 8), 9);
  return formatUuid(bytes);
}

const HEX = Buffer.from("0123456789abcdef", "latin1");
const SCRATCH = Buffer.from(NIL_ID, "latin1");
/** Where the bytes of a uuid stand in its text: the first of two digits. */
export const UUID_PLACES = new Uint8Array([0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]);

// Written into one flat string: a string made of slices is put together again by everybody who reads it.
function formatUuid(bytes: Uint8Array): Uuid {
  for (let i = 0; i < 16; i++) {
    const byte = bytes[i]!;
    const place = UUID_PLACES[i]!;
    SCRATCH[place] = HEX[byte >> 4]!;
    SCRATCH[place + 1] = HEX[byte & 15]!;
  }
  return SCRATCH.toString("latin1");
}

function sha256(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

/** A fresh id in `bucket`, its time part being `at` (whole ms). */
export function mintId(at: Instant, bucket: number): Uuid {
  return assemble(Math.floor(at), bucket, randomBytes(8));
}

/** The identity of (schedule, kind, nominal instant): the same inputs give the same id, for ever. */
export function deriveRunId(scheduleId: Uuid, kind: string, scheduledAt: Instant): Uuid {
  return assemble(scheduledAt, bucketOf(scheduleId), sha256(`${scheduleId}\n${kind}\n${scheduledAt}`));
}

/** The first 128 bits of the text's SHA-256, in the form of an id. */
export function digestOf(text: string): Uuid {
  return formatUuid(sha256(text));
}

/** Stable hash of (tenant, creation key) onto the 1,024 buckets. */
export function bucketFor(tenantId: Uuid, creationKey: string): number {
  return sha256(`${tenantId}\n${creationKey}`).readUInt16BE(0) % BUCKETS;
}

export function randomBucket(): number {
  return randomBytes(2).readUInt16BE(0) % BUCKETS;
}

/** Bucket carried by an id (0 to 1,023). */
export function bucketOf(id: Uuid): number {
  return ((Number.parseInt(id[15]!, 16) & 0b11) << 8) | Number.parseInt(id.slice(16, 18), 16);
}

/** Instant carried by an id (epoch ms). */
export function instantOf(id: Uuid): Instant {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"; // Crockford base32, lower case
const SHOWN = /^[0-7][0-9a-hjkmnp-tv-z]{25}$/;

const DIGITS = Buffer.from(ALPHABET, "latin1");
const SHOWN_SCRATCH = Buffer.alloc(26);

/** How people see an id: `run_01jd…` (prefix, underscore, 26 characters of Crockford base32). */
export function showId(kind: IdKind, id: Uuid): string {
  // 128 bits in 26 digits of 5, right-aligned: the first digit holds 3 bits. Every attempt shows its ids to its handler.
  let bits = 0;
  let held = 2;
  let digit = 0;
  for (let i = 0; i < 36; i++) {
    const code = id.charCodeAt(i);
    if (code === 0x2d) continue;
    bits = (bits << 4) | (code <= 0x39 ? code & 15 : (code & 15) + 9);
    held += 4;
    if (held < 5) continue;
    held -= 5;
    SHOWN_SCRATCH[digit++] = DIGITS[(bits >> held) & 31]!;
    bits &= 15;
  }
  return `${kind}_${SHOWN_SCRATCH.toString("latin1")}`;
}

/** No instant from here on can be kept, so no id carries one. */
const END_OF_IDS: Instant = Date.UTC(10_000, 0, 1);

/** The uuid behind a shown id, or undefined when `text` is not a shown id of that kind, or none of ours. */
export function readId(kind: IdKind, text: string): Uuid | undefined {
  if (!text.startsWith(`${kind}_`)) return undefined;
  const body = text.slice(kind.length + 1);
  if (!SHOWN.test(body)) return undefined;
  let value = 0n;
  for (const char of body) value = (value << 5n) | BigInt(ALPHABET.indexOf(char));
  const id = formatUuid(Buffer.from(value.toString(16).padStart(32, "0"), "hex"));
  return instantOf(id) < END_OF_IDS ? id : undefined;
}

import { createHash } from "node:crypto";
import { BUCKETS } from "../../kernel/ids.ts";

/**
 * Rendezvous (highest random weight) hashing: every scanner computes the same owners from the same live set, and a
 * scanner that comes or goes moves only its own share. Source: Thaler & Ravishankar, 1998.
 */
export function bucketsOf(me: string, live: readonly string[]): number[] {
  const mine: number[] = [];
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    const own = weight(me, bucket);
    if (live.every((other) => other === me || beats(own, me, weight(other, bucket), other))) mine.push(bucket);
  }
  return mine;
}

function weight(scanner: string, bucket: number): number {
  return createHash("sha256").update(`${scanner}\n${bucket}`).digest().readUIntBE(0, 6);
}

function beats(own: number, me: string, theirs: number, other: string): boolean {
  return own > theirs || (own === theirs && me > other);
}

/** Owned buckets as a text of 1,024 zeros and ones, for `get_bit`. */
export function bucketMask(buckets: readonly number[]): string {
  const bits = new Array<string>(BUCKETS).fill("0");
  for (const bucket of buckets) bits[bucket] = "1";
  return bits.join("");
}

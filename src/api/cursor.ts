import { createHmac } from "node:crypto";
import { sameHash } from "./keys.ts";
import { Problem } from "./problems/problem.ts";

/**
 * Opaque cursors: a few strings and numbers, signed, bound to one list and its filters. They stay valid over restarts
 * and on every replica, as long as the server secret is the same. What is not one of ours is a 400, never a surprise in SQL.
 */
export type CursorCodec = {
  write(list: string, position: readonly (string | number)[]): string;
  /** Throws `invalid-cursor` unless `text` was written for this very `list`. */
  read(list: string, text: string): (string | number)[];
};

const MAC_BYTES = 16;

export function createCursorCodec(secret: string | Buffer): CursorCodec {
  const sign = (list: string, body: Buffer) =>
    createHmac("sha256", secret).update(`cursor\n${list}\n`).update(body).digest().subarray(0, MAC_BYTES);
  return {
    write(list, position) {
      const body = Buffer.from(JSON.stringify(position));
      return Buffer.concat([sign(list, body), body]).toString("base64url");
    },
    read(list, text) {
      const bytes = /^[A-Za-z0-9_-]{1,1000}$/.test(text) ? Buffer.from(text, "base64url") : Buffer.alloc(0);
      const body = bytes.subarray(MAC_BYTES);
      if (bytes.length <= MAC_BYTES || !sameHash(bytes.subarray(0, MAC_BYTES), sign(list, body))) {
        throw new Problem("invalid-cursor", "after: take `next` of the page before, with the same filters", {
          errors: [
            { field: "after", message: "is not a cursor of this list with these filters", found: text.slice(0, 80) },
          ],
        });
      }
      return JSON.parse(body.toString()) as (string | number)[];
    },
  };
}

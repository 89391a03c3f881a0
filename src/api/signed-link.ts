import { createHmac } from "node:crypto";
import type { Instant } from "../kernel/clock.ts";
import { sameHash } from "./keys.ts";

/** Short-lived links to a run's result: whoever holds one may read exactly these bytes, until it expires. */
export type LinkSigner = {
  sign(subject: LinkSubject): string;
  isValid(subject: LinkSubject, signature: string, now: Instant): boolean;
};

export type LinkSubject = {
  /** Shown run id. */
  run: string;
  /** Checksum of the result, so that a link never leads to other bytes. */
  sha256: string;
  /** Whole epoch seconds. */
  expires: number;
};

export function createLinkSigner(secret: string | Buffer): LinkSigner {
  const mac = (subject: LinkSubject) =>
    createHmac("sha256", secret).update(`link\n${subject.run}\n${subject.sha256}\n${subject.expires}`).digest();
  return {
    sign: (subject) => mac(subject).toString("base64url"),
    isValid: (subject, signature, now) =>
      subject.expires * 1000 > now && sameHash(Buffer.from(signature, "base64url"), mac(subject)),
  };
}

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Instant } from "../../kernel/clock.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Fence } from "../fence.ts";

/** What a callback token stands for: one attempt of one run, and nothing else in the world. */
export type CallbackSubject = {
  tenantId: Uuid;
  runId: Uuid;
  attempt: number;
  fence: Fence;
  /** From here on the token opens nothing. */
  endsAt: Instant;
};

/**
 * Credentials for who does the work of one attempt elsewhere: `cb_` and 50 bytes of what it stands for, signed with
 * HMAC-SHA-256. Nothing is stored: whether the attempt is still the run's is for its fence to say.
 */
export type CallbackTokens = {
  issue(subject: CallbackSubject): string;
  /** Undefined: not ours, tampered with, or over. */
  read(token: string, nowAt: Instant): CallbackSubject | undefined;
};

const PREFIX = "cb_";
const SIZE = 16 + 16 + 4 + 8 + 6;
const MAC_SIZE = 32;

export function createCallbackTokens(secret: string | Buffer): CallbackTokens {
  const mac = (body: Buffer) => createHmac("sha256", secret).update("callback\n").update(body).digest();
  return {
    issue(subject) {
      const body = bytesOf(subject);
      return PREFIX + Buffer.concat([body, mac(body)]).toString("base64url");
    },
    read(token, nowAt) {
      if (!token.startsWith(PREFIX)) return undefined;
      const bytes = Buffer.from(token.slice(PREFIX.length), "base64url");
      if (bytes.length !== SIZE + MAC_SIZE) return undefined;
      const body = bytes.subarray(0, SIZE);
      if (!timingSafeEqual(bytes.subarray(SIZE), mac(body))) return undefined;
      const subject = subjectOf(body);
      return subject.endsAt > nowAt ? subject : undefined;
    },
  };
}

function bytesOf({ tenantId, runId, attempt, fence, endsAt }: CallbackSubject): Buffer {
  const body = Buffer.alloc(SIZE);
  body.write(tenantId.replaceAll("-", ""), 0, "hex");
  body.write(runId.replaceAll("-", ""), 16, "hex");
  body.writeUInt32BE(attempt, 32);
  body.writeBigInt64BE(fence, 36);
  body.writeUIntBE(Math.ceil(endsAt), 44, 6);
  return body;
}

function subjectOf(body: Buffer): CallbackSubject {
  return {
    tenantId: uuidAt(body, 0),
    runId: uuidAt(body, 16),
    attempt: body.readUInt32BE(32),
    fence: body.readBigInt64BE(36),
    endsAt: body.readUIntBE(44, 6),
  };
}

function uuidAt(body: Buffer, at: number): Uuid {
  return body.toString("hex", at, at + 16).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

import { createHash } from "node:crypto";
import type { Uuid } from "../../kernel/ids.ts";
import type { ApiContext } from "../context.ts";
import { fieldProblem, Problem } from "../problems/problem.ts";
import { showValue } from "./issues.ts";

/** What a key creates is part of it: the same text on two routes is two keys. */
export type KeyPurpose =
  | "schedule"
  | "run"
  | "run-now"
  | "backfill"
  | "replay"
  | `dead-letters.${"replay" | "dismiss"}`;

/** In the scope of a schedule a key without a purpose is one of a run-now, unless it looks as if it had one. */
export function storedKey(purpose: KeyPurpose, key: string): string {
  return purpose === "run-now" && !/^(run-now|backfill):/.test(key) ? key : `${purpose}:${key}`;
}

/** Under which keys an operation may stand that was asked for with this one: on a schedule, or in the tenant. */
export function storedOperationKeys(scope: "schedule" | "tenant", key: string): string[] {
  const purposes = scope === "schedule" ? ["backfill"] : ["dead-letters.replay", "dead-letters.dismiss"];
  return (purposes as KeyPurpose[]).map((purpose) => storedKey(purpose, key));
}

/** A key with what stands for the body: its hash, and how else the same body may have been written down. */
type SentKey = { key: string; bodySha256: Buffer; alsoSha256?: readonly Buffer[] };

/** The request's idempotency key with the hash of its body, whatever the order of keys and the spaces; undefined without one. */
export function requestKeyOf(
  purpose: KeyPurpose,
  header: string | undefined,
  sentBody: unknown,
): { requestKey: SentKey } | undefined {
  if (header === undefined) return undefined;
  if (!/^[\x21-\x7e]{1,200}$/.test(header)) {
    throw fieldProblem({
      field: "Idempotency-Key",
      message: "cannot be used as a key",
      found: showValue(header),
      allowed: "1 to 200 visible ASCII characters",
    });
  }
  const bodySha256 = createHash("sha256").update(canonicalJson(sentBody)).digest();
  return { requestKey: { key: storedKey(purpose, header), bodySha256 } };
}

/** The request's idempotency key. What stands for a body with secrets is of no use to who has the database alone. */
export async function requestKeyWith(
  context: ApiContext,
  tenantId: Uuid,
  /** How many of them the body has: its hash alone could be guessed at. */
  secrets: number,
  purpose: KeyPurpose,
  call: { header(name: string): string | undefined; sentBody: unknown },
): Promise<{ requestKey: SentKey } | undefined> {
  const plain = requestKeyOf(purpose, call.header("idempotency-key"), call.sentBody);
  if (plain === undefined || secrets === 0) return plain;
  const { key, bodySha256 } = plain.requestKey;
  const [mac, ...earlier] = await context.authority.vault.macsOf(tenantId, canonicalJson(call.sentBody));
  // Written down before there were secrets, the same body had another hash.
  return { requestKey: { key, bodySha256: mac!, alsoSha256: [...earlier, bodySha256] } };
}

export function keyReused(): Problem {
  const detail = "Idempotency-Key: it was used with another body; take a new key for a new request";
  return new Problem("request-key-reused", detail);
}

/** JSON with sorted keys and no spaces. */
function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const members = Object.entries(value)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, item]) => `${JSON.stringify(key)}:${canonicalJson(item)}`);
  return `{${members.join(",")}}`;
}

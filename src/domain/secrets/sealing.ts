import { createCipheriv, createDecipheriv, createHmac, hkdfSync, type KeyObject, randomBytes } from "node:crypto";
import type { Uuid } from "../../kernel/ids.ts";
import type { Json } from "../definition.ts";

/** The key that a tenant's secrets are sealed with. It never leaves the process but wrapped by a master key. */
export type DataKey = { readonly tenantId: Uuid; readonly id: Uuid; readonly key: KeyObject };

/**
 * Master keys, as far as anybody but their owner knows them: the first wraps, all of them unwrap. Whose data key it is
 * goes into the wrapping, so that a row that was copied to another tenant does not open.
 */
export type MasterKeys = {
  readonly ids: readonly string[];
  wrap(of: Pick<DataKey, "tenantId" | "id">, bytes: Uint8Array): { masterKeyId: string; wrapped: Buffer };
  /** Undefined where that master key is not among ours, or does not open it. */
  unwrap(
    of: Pick<DataKey, "tenantId" | "id">,
    row: { masterKeyId: string; wrapped: Uint8Array },
  ): KeyObject | undefined;
};

const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** AES-256-GCM under a fresh nonce: nonce, ciphertext and tag in one. */
export function encrypt(key: KeyObject, bound: string, plain: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(bound));
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

/** Undefined where it was not encrypted so: another key, bound to something else, or damaged. */
export function decrypt(key: KeyObject, bound: string, bytes: Uint8Array): Buffer | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(bound));
  decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, bytes.length - TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}

const boundTo = ({ tenantId, id }: Pick<DataKey, "tenantId" | "id">) => `punctual secret v1\n${tenantId}\n${id}`;

/** `v1.<data key>.<nonce, ciphertext, tag>`: what is stored. */
export function seal(dataKey: DataKey, value: Json): string {
  const bytes = encrypt(dataKey.key, boundTo(dataKey), Buffer.from(JSON.stringify(value)));
  return `v1.${dataKey.id}.${bytes.toString("base64url")}`;
}

/** How many bytes of JSON are sealed in it, for whoever cannot open it. */
export function plainBytesOf(text: string): number {
  return Math.floor(((text.split(".")[2] ?? "").length * 3) / 4) - NONCE_BYTES - TAG_BYTES;
}

/** The data key that a sealed text names. */
export function dataKeyIdOf(text: string): Uuid {
  return text.split(".")[1] ?? "";
}

/** Undefined where the text was not sealed under this key for this tenant. */
export function open(dataKey: DataKey, text: string): { value: Json } | undefined {
  const bytes = Buffer.from(text.split(".")[2] ?? "", "base64url");
  const plain = decrypt(dataKey.key, boundTo(dataKey), bytes);
  return plain === undefined ? undefined : { value: JSON.parse(plain.toString()) as Json };
}

/** What stands for a request that carries secrets: who has the database alone cannot try guesses against it. */
export function macOfRequest(dataKey: DataKey, canonical: string): Buffer {
  const key = Buffer.from(hkdfSync("sha256", dataKey.key, "", `punctual request v1\n${dataKey.tenantId}`, 32));
  return createHmac("sha256", key).update(canonical).digest();
}

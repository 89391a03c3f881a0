import { createSecretKey } from "node:crypto";
import { decrypt, encrypt, type MasterKeys } from "../../domain/secrets/sealing.ts";
import { operatorError } from "../../kernel/errors.ts";
import type { Config } from "../config.ts";
import { findSecret, keepSecret } from "../secret.ts";
import { faultOfKeys, newMasterKey, readKeys } from "./key-list.ts";

/** Beside the other files that `npm start` keeps. Without it a backup of the database opens no secret. */
const FILE = "secret-keys";

/** Makes the key file of `npm start` where there is none. */
export function keepMasterKeys(config: Config): void {
  if (config.PUNCTUAL_SECRET_KEYS !== undefined) return;
  keepSecret(config.PUNCTUAL_DIR, FILE, () => newMasterKey("first"));
}

/** As configured, else from the file of `npm start`; undefined: this installation keeps no secrets. */
export function findMasterKeys(config: Config): MasterKeys | undefined {
  const text = config.PUNCTUAL_SECRET_KEYS ?? findSecret(config.PUNCTUAL_DIR, FILE);
  if (text === undefined) return undefined;
  const fault = faultOfKeys(text);
  if (fault !== undefined) throw operatorError("config-invalid", `${FILE} in PUNCTUAL_DIR: ${fault}`, { key: FILE });
  return createMasterKeys(text);
}

/** The first of the list wraps, all of them unwrap. */
export function createMasterKeys(text: string): MasterKeys {
  const keys = readKeys(text);
  const bound = (of: { tenantId: string; id: string }, masterKeyId: string) =>
    `punctual data key v1\n${masterKeyId}\n${of.tenantId}\n${of.id}`;
  return {
    ids: keys.map((one) => one.id),
    wrap(of, bytes) {
      const { id: masterKeyId, key } = keys[0]!;
      return { masterKeyId, wrapped: encrypt(key, bound(of, masterKeyId), bytes) };
    },
    unwrap(of, { masterKeyId, wrapped }) {
      const found = keys.find((one) => one.id === masterKeyId);
      const bytes = found && decrypt(found.key, bound(of, masterKeyId), wrapped);
      return bytes === undefined ? undefined : createSecretKey(bytes);
    },
  };
}

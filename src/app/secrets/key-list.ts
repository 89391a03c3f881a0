import { createSecretKey, type KeyObject, randomBytes } from "node:crypto";

/** PUNCTUAL_SECRET_KEYS as text. Nothing here says a word of a key. */
const KEY_BYTES = 32;
const ALLOWED = "id:base64 of 32 bytes, several with commas between; `punctual secrets new-key` makes one";

const ID = "[A-Za-z0-9][A-Za-z0-9_-]{0,39}";
const ENTRY = new RegExp(`^(${ID}):([A-Za-z0-9+/]{43}=)$`);

export type MasterKey = { id: string; key: KeyObject };

/** What is wrong with a list of keys, without a word of the keys themselves; undefined when it can be used. */
export function faultOfKeys(text: string): string | undefined {
  const ids = new Set<string>();
  for (const [i, entry] of entriesOf(text).entries()) {
    const read = readKey(entry);
    if (read === undefined) return `entry ${i + 1} is no key; allowed: ${ALLOWED}`;
    if (ids.has(read.id)) return `entry ${i + 1} has the id of another; allowed: ${ALLOWED}`;
    ids.add(read.id);
  }
  return undefined;
}

/** The keys of a list that has no fault. */
export function readKeys(text: string): MasterKey[] {
  return entriesOf(text).map((entry) => readKey(entry)!);
}

const entriesOf = (text: string) => text.split(",").map((entry) => entry.trim());

function readKey(entry: string): MasterKey | undefined {
  const [, id, base64] = ENTRY.exec(entry) ?? [];
  if (id === undefined) return undefined;
  const bytes = Buffer.from(base64!, "base64");
  return bytes.length === KEY_BYTES ? { id, key: createSecretKey(bytes) } : undefined;
}

export function isKeyId(text: string): boolean {
  return new RegExp(`^${ID}$`).test(text);
}

/** A fresh key as PUNCTUAL_SECRET_KEYS takes it. */
export function newMasterKey(id: string): string {
  return `${id}:${randomBytes(KEY_BYTES).toString("base64")}`;
}

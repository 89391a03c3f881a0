import { LRUCache } from "lru-cache";
import type { Json } from "../../domain/definition.ts";
import { type DataKey, dataKeyIdOf, type MasterKeys, macOfRequest, open, seal } from "../../domain/secrets/sealing.ts";
import { operatorError, type PunctualError } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { type DataKeyRow, findDataKey, findKeyInUse, listDataKeys } from "../../store/rows/tenants/data-keys.ts";
import type { Authority } from "../authority.ts";
import { beginDataKey } from "./begin-data-key.ts";

/** Seals and opens secrets of tenants, with keys that only this process has unwrapped. */
export type Vault = {
  /** Seals for a tenant, making its first data key where it has none. Throws `secrets-unavailable`. */
  sealer(tenantId: Uuid): Promise<(value: Json) => string>;
  /** What sealed texts of this tenant hold. Throws `secret-unavailable`, which tells of keys and of nothing else. */
  open(tenantId: Uuid, texts: readonly string[]): Promise<Map<string, Json>>;
  /** What may stand for a request that carries secrets: under the tenant's key in use, then under those before it. */
  macsOf(tenantId: Uuid, canonical: string): Promise<Buffer[]>;
};

const MOST_KEYS = 1_000;
/** How long another process may go on sealing with a key that was retired. */
const IN_USE_MS = 30_000;
/** Keys that a request which was sent before may have been written down under. */
const MOST_MACS = 8;

export function createVault(authority: Authority, masterKeys: MasterKeys | undefined): Vault {
  const { clock, db } = authority;
  const keys = new LRUCache<string, DataKey>({ max: MOST_KEYS });
  const inUse = new LRUCache<Uuid, { key: DataKey; readMs: number }>({ max: MOST_KEYS });

  function master(): MasterKeys {
    if (masterKeys !== undefined) return masterKeys;
    throw operatorError(
      "secrets-unavailable",
      "This installation keeps no secrets: its operator has not set PUNCTUAL_SECRET_KEYS",
    );
  }

  function unwrapped(row: DataKeyRow): DataKey {
    const { tenantId, id, masterKeyId } = row;
    const name = `${tenantId} ${id}`;
    const known = keys.get(name);
    if (known !== undefined) return known;
    const key = master().unwrap({ tenantId, id }, row);
    if (key === undefined) {
      throw cannotOpen(
        master().ids.includes(masterKeyId)
          ? `data key ${id} does not open with master key ${masterKeyId}`
          : `data key ${id} is wrapped by master key ${masterKeyId}, which PUNCTUAL_SECRET_KEYS does not have`,
      );
    }
    const fresh = { tenantId, id, key };
    keys.set(name, fresh);
    return fresh;
  }

  async function keyOf(tenantId: Uuid, id: Uuid): Promise<DataKey> {
    const known = keys.get(`${tenantId} ${id}`);
    if (known !== undefined) return known;
    if (masterKeys === undefined) throw cannotOpen("PUNCTUAL_SECRET_KEYS is not set in this process");
    const row = await findDataKey(db, tenantId, id);
    if (row === undefined) throw cannotOpen(`this tenant has no data key ${id}`);
    return unwrapped(row);
  }

  async function keyInUse(tenantId: Uuid): Promise<DataKey> {
    const nowMs = clock.monotonic();
    const known = inUse.get(tenantId);
    if (known !== undefined && nowMs - known.readMs < IN_USE_MS) return known.key;
    const key = unwrapped((await findKeyInUse(db, tenantId)) ?? (await firstKey(tenantId)));
    inUse.set(tenantId, { key, readMs: nowMs });
    return key;
  }

  async function firstKey(tenantId: Uuid): Promise<DataKeyRow> {
    const begun = await beginDataKey(authority, master(), { tenantId, actor: "vault", rotate: false });
    if (begun.kind === "no-tenant") throw cannotOpen("there is no such tenant");
    return begun.row;
  }

  return {
    async sealer(tenantId) {
      master();
      const key = await keyInUse(tenantId);
      return (value) => seal(key, value);
    },
    async open(tenantId, texts) {
      const opened = new Map<string, Json>();
      for (const text of texts) {
        const found = open(await keyOf(tenantId, dataKeyIdOf(text)), text);
        if (found === undefined) throw cannotOpen("it was not sealed for this tenant, or is damaged");
        opened.set(text, found.value);
      }
      return opened;
    },
    async macsOf(tenantId, canonical) {
      const newest = await keyInUse(tenantId);
      const rows = await listDataKeys(db, tenantId, MOST_MACS);
      const others = rows.filter((row) => row.id !== newest.id).flatMap((row) => unwrappedOrNone(row));
      return [newest, ...others].map((key) => macOfRequest(key, canonical));
    },
  };

  /** Without a key that cannot be had any more, a request of its time is a new one. */
  function unwrappedOrNone(row: DataKeyRow): DataKey[] {
    try {
      return [unwrapped(row)];
    } catch {
      return [];
    }
  }
}

function cannotOpen(why: string): PunctualError {
  return operatorError("secret-unavailable", `a secret cannot be opened: ${why}`);
}

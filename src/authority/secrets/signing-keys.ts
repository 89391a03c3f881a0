import { LRUCache } from "lru-cache";
import { bytesOfSecret } from "../../domain/secrets/signing-secret.ts";
import type { Uuid } from "../../kernel/ids.ts";
import { findSigningKeys } from "../../store/rows/tenants/signing-keys.ts";
import type { Authority } from "../authority.ts";

/** What is read is gone by for so many ms: a key that was revoked or ended may sign for so long elsewhere. */
const TRUST_MS = 5_000;
const MOST_TENANTS = 10_000;

/**
 * A tenant's signing keys, opened, the newest first. Throws where there are some and they cannot be had: who has keys
 * never sends unsigned.
 */
export function createSigningKeys({ db, clock, vault }: Pick<Authority, "db" | "clock" | "vault">): {
  keysOf(tenantId: Uuid): Promise<readonly Uint8Array[]>;
} {
  const known = new LRUCache<Uuid, { keys: readonly Uint8Array[]; readMs: number }>({ max: MOST_TENANTS });
  return {
    async keysOf(tenantId) {
      const readMs = clock.monotonic();
      const found = known.get(tenantId);
      if (found !== undefined && readMs - found.readMs < TRUST_MS) return found.keys;
      const sealed = await findSigningKeys(db, tenantId);
      const opened = await vault.open(tenantId, sealed);
      const keys = sealed.map((text) => bytesOfSecret(String(opened.get(text))));
      known.set(tenantId, { keys, readMs });
      return keys;
    },
  };
}

import type { Uuid } from "../../kernel/ids.ts";
import { noteUseOfKeys } from "../../store/rows/tenants/keys.ts";
import type { Authority } from "../authority.ts";

/**
 * Remembers that these keys were used, to the minute.
 * Locks   the keys, skipping what others hold: it is noted with the next use.
 * Time    the statement's own: nothing is decided by it.
 * Writes  api_key.last_used_at, where it is older than a minute.
 * Replay  nothing.
 */
export function noteKeyUse(authority: Authority, keyIds: readonly Uuid[]): Promise<void> {
  return authority.transact("note-key-use", (tx) => noteUseOfKeys(tx, keyIds));
}

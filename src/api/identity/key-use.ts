import { LRUCache } from "lru-cache";
import type { Authority } from "../../authority/authority.ts";
import { noteKeyUse } from "../../authority/tenants/note-key-use.ts";
import type { Clock, Timer } from "../../kernel/clock.ts";
import { messageOf } from "../../kernel/errors.ts";
import type { Uuid } from "../../kernel/ids.ts";
import type { Log } from "../../kernel/log.ts";

/** When a key was last used is told to the minute. */
const COARSE_MS = 60_000;
const GATHER_MS = 1_000;

/** Remembers that keys are used: beside the calls, many keys at once, and no call fails for it. */
export type KeyUse = { note(keyId: Uuid): void; close(): Promise<void> };

export function createKeyUse(deps: { authority: Authority; clock: Clock; log: Log }): KeyUse {
  const { authority, clock, log } = deps;
  const notedAt = new LRUCache<Uuid, number>({ max: 10_000 });
  const pending = new Set<Uuid>();
  let timer: Timer | undefined;
  let writing: Promise<void> = Promise.resolve();

  async function write(): Promise<void> {
    timer = undefined;
    const keyIds = [...pending];
    pending.clear();
    if (keyIds.length === 0) return;
    try {
      await noteKeyUse(authority, keyIds);
    } catch (error) {
      // The next call with such a key tries again.
      for (const keyId of keyIds) notedAt.delete(keyId);
      log.warn({ keys: keyIds.length, reason: messageOf(error) }, "the last use of API keys was not written down");
    }
  }

  return {
    note(keyId) {
      const now = clock.monotonic();
      if (now - (notedAt.get(keyId) ?? Number.NEGATIVE_INFINITY) < COARSE_MS) return;
      notedAt.set(keyId, now);
      pending.add(keyId);
      timer ??= clock.after(GATHER_MS, () => {
        // Behind the one before: a slow database is written to once at a time, and all of it is waited for at the end.
        writing = writing.then(write);
      });
    },
    async close() {
      timer?.cancel();
      await writing;
      await write();
    },
  };
}

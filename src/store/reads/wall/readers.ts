import type { Clock } from "../../../kernel/clock.ts";
import { messageOf } from "../../../kernel/errors.ts";
import type { Uuid } from "../../../kernel/ids.ts";
import type { Log } from "../../../kernel/log.ts";
import type { Database, Reads } from "../../database.ts";
import { findWallGaps } from "./gaps.ts";
import { READER } from "./tables.ts";

/** Where the wall does not stand, it is looked at again so often. */
const LOOK_EVERY_MS = 60_000;
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Reads that see one tenant's rows. */
export type Readers = (tenantId: Uuid) => Reads;

/**
 * Reads behind the second wall. Where it does not stand, reads go on without it: it is there for our mistakes, and an
 * installation without it is the one there was before. The log and the doctor say so.
 */
export function createReaders(deps: { db: Database; clock: Clock; log: Log }): Readers {
  const { db, clock, log } = deps;
  let stands: Promise<boolean> | undefined;
  let lookedAt = Number.NEGATIVE_INFINITY;

  function standing(): Promise<boolean> {
    if (stands === undefined || clock.monotonic() - lookedAt >= LOOK_EVERY_MS) {
      lookedAt = clock.monotonic();
      stands = look();
      void stands.then((yes) => {
        if (yes) lookedAt = Number.POSITIVE_INFINITY;
      });
    }
    return stands;
  }

  async function look(): Promise<boolean> {
    try {
      const { role, tables } = await findWallGaps(db);
      if (role === "there" && tables.length === 0) return true;
      log.warn({ role, tables }, "reads have no second wall between tenants; `punctual doctor --only wall` says more");
    } catch (error) {
      log.warn({ reason: messageOf(error) }, "whether the second wall between tenants stands is not known");
    }
    return false;
  }

  return (tenantId) => {
    if (!UUID.test(tenantId)) throw new TypeError("a tenant has an id");
    const behind = db.within(`set local role ${READER};set local punctual.tenant = '${tenantId}'`);
    const reads = async () => ((await standing()) ? behind : db);
    return {
      query: async (statement, values) => (await reads()).query(statement, values),
      queryWithin: async (timeoutMs, statement, values) => (await reads()).queryWithin(timeoutMs, statement, values),
      transact: async (options, work) => (await reads()).transact(options, work),
    };
  };
}

import type { MasterKeys } from "../../domain/secrets/sealing.ts";
import { NIL_ID } from "../../kernel/ids.ts";
import { type DataKeyRow, lockOlderKeys, rewrapKeys } from "../../store/rows/tenants/data-keys.ts";
import type { Authority } from "../authority.ts";

/** How far a walk over the keys of an installation has come. */
export type KeyPosition = Pick<DataKeyRow, "tenantId" | "id">;

export const FIRST_KEY: KeyPosition = { tenantId: NIL_ID, id: NIL_ID };

export type Rewrapped = { rewrapped: number; failed: readonly DataKeyRow[]; next: KeyPosition | undefined };

/**
 * Wraps some data keys anew, with the newest master key: what they have sealed is not touched.
 * Locks   the data keys, by tenant and id.
 * Time    none.
 * Writes  tenant_data_key. A key whose master key is not configured stays as it is and is answered.
 * Replay  a key that the newest wraps already is passed by; a walk that broke off may begin anew.
 */
export function rewrapDataKeys(
  authority: Authority,
  masterKeys: MasterKeys,
  request: { after: KeyPosition; limit: number },
): Promise<Rewrapped> {
  const newest = masterKeys.ids[0]!;
  return authority.transact("rewrap-data-keys", async (tx) => {
    const rows = await lockOlderKeys(tx, newest, request.after, request.limit);
    const failed: DataKeyRow[] = [];
    const rewrapped = rows.flatMap((row) => {
      const key = masterKeys.unwrap(row, row);
      if (key !== undefined) return [{ ...row, ...masterKeys.wrap(row, key.export()) }];
      failed.push(row);
      return [];
    });
    await rewrapKeys(tx, newest, rewrapped);
    const last = rows.at(-1);
    const next =
      rows.length < request.limit || last === undefined ? undefined : { tenantId: last.tenantId, id: last.id };
    return { rewrapped: rewrapped.length, failed, next };
  });
}

import { FIRST_KEY } from "../../authority/secrets/rewrap-data-keys.ts";
import { pageOfKeys } from "../../store/rows/tenants/data-keys.ts";
import { type Check, finding, ok, skipped } from "../doctor/check.ts";
import { findMasterKeys } from "./master-keys.ts";

const PAGE = 1_000;

/** Unwraps every data key, and tells of keys by their ids alone. */
export const secretKeysCheck: Check = {
  id: "secret-keys",
  name: "secrets can be opened",
  async examine({ db, config }) {
    const masterKeys = findMasterKeys(config);
    const closed: { tenantId: string; dataKeyId: string; masterKeyId: string }[] = [];
    let keys = 0;
    let older = 0;
    for (let after = FIRST_KEY, more = true; more; ) {
      const rows = await pageOfKeys(db, after, PAGE);
      for (const row of rows) {
        const { tenantId, id, masterKeyId } = row;
        if (masterKeyId !== masterKeys?.ids[0]) older++;
        if (masterKeys?.unwrap(row, row) === undefined) closed.push({ tenantId, dataKeyId: id, masterKeyId });
      }
      keys += rows.length;
      more = rows.length === PAGE;
      after = rows.at(-1) ?? after;
    }
    if (keys === 0) {
      return masterKeys === undefined
        ? skipped("no master key is set (PUNCTUAL_SECRET_KEYS), and no tenant has secrets")
        : ok("no tenant has secrets yet");
    }
    if (closed.length > 0) {
      const missing = [...new Set(closed.map((one) => one.masterKeyId))].join(", ");
      return finding(
        `${closed.length} of ${keys} data keys cannot be unwrapped by the master keys of this configuration; they name ${missing}`,
        "runs whose payloads they sealed fail with secret-unavailable, and so do edits of their schedules; what is signed or authorised with them is not sent",
        "put those master keys back into PUNCTUAL_SECRET_KEYS, behind the newest; what nobody has any more must be sent anew",
        closed.slice(0, 20),
      );
    }
    const rest = older === 0 ? "" : `; ${older} by an older master key: punctual secrets rewrap`;
    return ok(`all ${keys} data keys can be unwrapped${rest}`);
  },
};

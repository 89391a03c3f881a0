import { beginDataKey } from "../../../authority/secrets/begin-data-key.ts";
import { FIRST_KEY, type KeyPosition, rewrapDataKeys } from "../../../authority/secrets/rewrap-data-keys.ts";
import type { MasterKeys } from "../../../domain/secrets/sealing.ts";
import { operatorError } from "../../../kernel/errors.ts";
import { findTenantOf } from "../../../store/reads/tenants/tenants.ts";
import { countByMaster, type DataKeyRow } from "../../../store/rows/tenants/data-keys.ts";
import type { Config } from "../../config.ts";
import { findMasterKeys } from "../../secrets/master-keys.ts";
import { withDatabase } from "../calendar/with-database.ts";
import { printJson, printLine, printTable } from "../print.ts";
import { EXIT, UsageError } from "../usage.ts";

type JsonOption = { json?: boolean };
export type RotateOptions = JsonOption & { tenant?: string };

const KEYS_AT_ONCE = 500;

export function showKeys(config: Config, options: JsonOption): Promise<void> {
  return withDatabase(config, async (core) => {
    const counts = await countByMaster(core.db);
    const ids = findMasterKeys(config)?.ids ?? [];
    const rows = counts.map((one) => ({ ...one, configured: ids.includes(one.masterKeyId) }));
    if (options.json) return printJson({ newest: ids[0] ?? null, keys: rows });
    printLine(ids.length === 0 ? "No master key is set." : `Master keys set: ${ids.join(", ")} (the first one wraps)`);
    if (rows.length === 0) return printLine("No tenant has a data key.");
    printTable(
      ["MASTER KEY", "DATA KEYS", "IN USE", "SET HERE"],
      rows.map((one) => [one.masterKeyId, String(one.keys), String(one.inUse), one.configured ? "yes" : "no"]),
    );
  });
}

/** A key that no master key here opens is left alone, and told of. */
export function rewrapAll(config: Config, options: JsonOption): Promise<number> {
  return withDatabase(config, async (core) => {
    const masterKeys = getMasterKeys(config);
    const failed: DataKeyRow[] = [];
    let rewrapped = 0;
    for (let after: KeyPosition | undefined = FIRST_KEY; after !== undefined; ) {
      const done = await rewrapDataKeys(core.authority, masterKeys, { after, limit: KEYS_AT_ONCE });
      rewrapped += done.rewrapped;
      failed.push(...done.failed);
      after = done.next;
    }
    const newest = masterKeys.ids[0]!;
    const left = [...new Set(failed.map((row) => row.masterKeyId))];
    if (options.json) printJson({ newest, rewrapped, failed: failed.length, missingMasterKeys: left });
    else {
      printLine(`Rewrapped ${rewrapped} data keys with ${newest}.`);
      if (failed.length > 0)
        printLine(`${failed.length} do not open with the master keys set here: ${left.join(", ")}`);
    }
    return failed.length === 0 ? EXIT.ok : EXIT.failed;
  });
}

export function rotate(config: Config, options: RotateOptions): Promise<void> {
  const { tenant } = options;
  if (tenant === undefined) throw new UsageError("--tenant <tenant>: not given, and required");
  return withDatabase(config, async (core) => {
    const masterKeys = getMasterKeys(config);
    const tenantId = (await findTenantOf(core.db, tenant))?.id;
    if (tenantId === undefined) throw noTenant(tenant);
    const begun = await beginDataKey(core.authority, masterKeys, { tenantId, actor: "operator", rotate: true });
    if (begun.kind === "no-tenant") throw noTenant(tenant);
    const { id } = begun.row;
    const retired = begun.kind === "begun" ? (begun.retired ?? null) : null;
    if (options.json) return printJson({ dataKeyId: id, retired });
    printLine(`Data key ${id} seals from now on, within half a minute in processes that run.`);
    if (retired !== null) printLine(`${retired} still opens what it has sealed.`);
  });
}

function noTenant(ref: string): UsageError {
  return new UsageError(`--tenant: found "${ref}"; there is no such tenant`);
}

function getMasterKeys(config: Config): MasterKeys {
  const masterKeys = findMasterKeys(config);
  if (masterKeys !== undefined) return masterKeys;
  throw operatorError("secrets-unavailable", "PUNCTUAL_SECRET_KEYS: is not set; it holds the master keys");
}

import { mintKey } from "../../../api/keys.ts";
import { createApiKey } from "../../../authority/tenants/create-api-key.ts";
import { createTenant } from "../../../authority/tenants/create-tenant.ts";
import { showId } from "../../../kernel/ids.ts";
import type { Config } from "../../config.ts";
import { withDatabase } from "../calendar/with-database.ts";
import { printJson, printLine, printNote } from "../print.ts";

export type FirstKeyOptions = { name: string; label: string; json?: boolean };

export function makeFirstKey(config: Config, { name, label, json }: FirstKeyOptions): Promise<void> {
  return withDatabase(config, async ({ authority }) => {
    const { tenantId } = await createTenant(authority, { name, actor: "operator" });
    const { key, ...minted } = mintKey();
    const made = await createApiKey(authority, { ...minted, tenantId, role: "admin", label, actor: "operator" });
    if (made.kind === "no-tenant") throw new Error(`the tenant ${name} has just been deleted`);
    const shown = { key, keyId: showId("key", made.keyId), tenantId: showId("ten", tenantId) };
    if (json) return printJson(shown);
    printLine(key);
    printNote(`Made ${shown.keyId}: ${label}, admin, of the tenant ${name} (${shown.tenantId})`);
  });
}

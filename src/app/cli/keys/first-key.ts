import type { Command } from "commander";
import { mintKey } from "../../../api/keys.ts";
import { createApiKey } from "../../../authority/tenants/create-api-key.ts";
import { createTenant } from "../../../authority/tenants/create-tenant.ts";
import { showId } from "../../../kernel/ids.ts";
import type { Act } from "../act.ts";
import { withDatabase } from "../calendar/with-database.ts";
import { printJson, printLine, printNote } from "../print.ts";

/** Where no key is there to ask the API with: whoever has the database makes one. */
export function firstKeyCommand(group: Command, act: Act): void {
  group
    .command("first")
    .description("make a tenant, where there is none of that name, and an admin key of it, on DATABASE_URL")
    .option("--name <name>", "the tenant's name", "platform")
    .option("--label <text>", "what the key is for", "first key")
    .option("--json", "print what was made as JSON, one line")
    .action(
      act((config, { name, label, json }: { name: string; label: string; json?: boolean }) =>
        withDatabase(config, async ({ authority }) => {
          const { tenantId } = await createTenant(authority, { name, actor: "operator" });
          const { key, ...minted } = mintKey();
          const made = await createApiKey(authority, { ...minted, tenantId, role: "admin", label, actor: "operator" });
          if (made.kind === "no-tenant") throw new Error(`the tenant ${name} has just been deleted`);
          const shown = { key, keyId: showId("key", made.keyId), tenantId: showId("ten", tenantId) };
          if (json) return printJson(shown);
          printLine(key);
          printNote(`Made ${shown.keyId}: ${label}, admin, of the tenant ${name} (${shown.tenantId})`);
        }),
      ),
    );
}

import type { Command } from "commander";
import type { Act } from "../act.ts";
import type { FirstKeyOptions } from "./make-first-key.ts";

/** Where no key is there to ask the API with: whoever has the database makes one. */
export function firstKeyCommand(group: Command, act: Act): void {
  group
    .command("first")
    .description("make a tenant, where there is none of that name, and an admin key of it, on DATABASE_URL")
    .option("--name <name>", "the tenant's name", "platform")
    .option("--label <text>", "what the key is for", "first key")
    .option("--json", "print what was made as JSON, one line")
    .action(
      act(async (config, options: FirstKeyOptions) => {
        const { makeFirstKey } = await import("./make-first-key.ts");
        return makeFirstKey(config, options);
      }),
    );
}

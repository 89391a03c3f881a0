import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printLine } from "../print.ts";
import { UsageError } from "../usage.ts";
import type { RotateOptions } from "./keys.ts";

export function secretsCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
They need the database (DATABASE_URL, or the running system of this checkout) and PUNCTUAL_SECRET_KEYS.
docs/operations.md, "Secrets in payloads", has a rotation step by step.

Examples:
  punctual secrets new-key 2026-11
  punctual secrets rewrap
  punctual secrets rotate --tenant demo`,
  );
  group
    .command("new-key <id>")
    .description("make a master key, as PUNCTUAL_SECRET_KEYS takes it; it is shown and kept nowhere")
    .action(
      act(async (_config, _options: object, id: string) => {
        const { isKeyId, newMasterKey } = await import("../../secrets/key-list.ts");
        if (!isKeyId(id)) {
          throw new UsageError(
            `<id>: found "${id}"; allowed: 1 to 40 letters, digits, _ or -, not beginning with - or _`,
          );
        }
        printLine(newMasterKey(id));
      }),
    );
  group
    .command("status")
    .description("count data keys by the master key that wraps them")
    .option("--json", "print it as JSON, one line")
    .action(
      act(async (config, options: { json?: boolean }) => {
        const { showKeys } = await import("./keys.ts");
        return showKeys(config, options);
      }),
    );
  group
    .command("rewrap")
    .description("wrap every data key with the newest master key; may be broken off and repeated")
    .option("--json", "print what was done as JSON, one line")
    .action(
      act(async (config, options: { json?: boolean }) => {
        const { rewrapAll } = await import("./keys.ts");
        return rewrapAll(config, options);
      }),
    );
  group
    .command("rotate")
    .description("begin a new data key for what a tenant seals from now on; what is sealed stays as it is")
    .option("--tenant <tenant>", "its name or ten_…")
    .option("--json", "print the keys' ids as JSON, one line")
    .action(
      act(async (config, options: RotateOptions) => {
        const { rotate } = await import("./keys.ts");
        return rotate(config, options);
      }),
    );
}

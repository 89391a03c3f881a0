import type { Command } from "commander";
import type { SigningKeyMade } from "../../../client/identity.ts";
import type { Act } from "../act.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showUtc } from "../words.ts";
import { readSeconds } from "./overlap.ts";

/** What signs the tenant's calls to others. */
export function signingKeysCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
A new key is written to standard output, and nowhere else: nobody can show it again. Receivers verify with it.

Examples:
  punctual signing-keys create --label "Webhooks to the CRM" > crm.whsec
  punctual signing-keys rotate sgk_01jd… --overlap 7d > crm.whsec`,
  );

  withClientOptions(pageOptions(group.command("list").description("list signing keys, newest first"))).action(
    act(async (config, { limit, after, ...options }: ClientOptions & { limit: string; after?: string }) => {
      const page = await clientFor(options, config).signingKeys.list({
        limit: readLimit(limit),
        ...(after === undefined ? {} : { after }),
      });
      if (options.json) return printJson(page);
      printTable(
        ["KEY", "LABEL", "STATE", "SIGNS UNTIL (UTC)", "CREATED (UTC)"],
        page.items.map((one) => [
          one.keyId,
          one.label,
          one.state,
          one.activeUntil === null ? "" : showUtc(one.activeUntil),
          showUtc(one.createdAt),
        ]),
      );
      if (page.next !== null) printLine(`More: --after ${page.next}`);
    }),
  );

  withClientOptions(group.command("create").description("make a signing key and print it, this once"))
    .option("--label <text>", "what it is for")
    .action(
      act(async (config, { label, ...options }: ClientOptions & { label?: string }) => {
        if (label === undefined) throw new UsageError("--label <text>: not given, and required (--help says more)");
        const made = await clientFor(options, config).signingKeys.create({ label });
        if (options.json) return printJson(made);
        printKey(made);
      }),
    );

  withClientOptions(group.command("rotate <key>").description("put a new key in the place of one and print it"))
    .option("--overlap <time>", "how long both sign, such as 0s, 30m, 24h or 7d", "24h")
    .action(
      act(async (config, { overlap, ...options }: ClientOptions & { overlap: string }, id: string) => {
        const made = await clientFor(options, config).signingKeys.rotate(id, { overlapSeconds: readSeconds(overlap) });
        if (options.json) return printJson(made);
        printKey(made);
        printNote(`${id} signs until ${showUtc(made.replaced.activeUntil)}`);
      }),
    );

  withClientOptions(group.command("revoke <key>").description("end a key: it signs nothing after 5 seconds")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const revoked = await clientFor(options, config).signingKeys.revoke(id);
      if (options.json) return printJson(revoked);
      printLine(revoked.changed ? `Revoked ${id} (${revoked.signingKey.label})` : `${id} was revoked already`);
    }),
  );
}

/** The key alone on standard output, for a file or a variable; what it is beside it. */
function printKey({ key, signingKey }: SigningKeyMade): void {
  printLine(key);
  printNote(`Made ${signingKey.keyId}: ${signingKey.label}`);
}

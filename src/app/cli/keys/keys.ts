import type { Command } from "commander";
import type { ApiKey, ApiKeyMade } from "../../../client/identity.ts";
import type { Act } from "../act.ts";
import { readWhole } from "../deadline.ts";
import { pageOptions, readLimit } from "../page.ts";
import { printJson, printLine, printNote, printTable } from "../print.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showUtc } from "../words.ts";
import { firstKeyCommand } from "./first-key.ts";
import { readSeconds } from "./overlap.ts";

type CreateOptions = ClientOptions & { label?: string; role?: string; expiresInDays?: string; expiresAt?: string };

/** Who may call for the tenant. */
export function keysCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
A new key is written to standard output, and nowhere else: nobody can show it again.

Examples:
  punctual keys create --label "Deploys from CI" --role operator --expires-in-days 90 > ci.key
  punctual keys rotate key_01jd… --overlap 1h > ci.key
  punctual keys create --tenant ten_01jd… --label "First key" --role owner
  punctual keys first --name platform                  # on DATABASE_URL, where there is no key yet`,
  );

  withClientOptions(pageOptions(group.command("list").description("list keys, newest first"))).action(
    act(async (config, { limit, after, ...options }: ClientOptions & { limit: string; after?: string }) => {
      const page = await clientFor(options, config).apiKeys.list({
        limit: readLimit(limit),
        ...(after === undefined ? {} : { after }),
      });
      if (options.json) return printJson(page);
      printTable(
        ["KEY", "BEGINS", "LABEL", "ROLE", "STATE", "EXPIRES (UTC)", "LAST USED (UTC)"],
        page.items.map((one) => [
          one.keyId,
          one.prefix,
          one.label,
          one.role,
          one.state,
          one.expiresAt === null ? "never" : showUtc(one.expiresAt),
          one.lastUsedAt === null ? "never" : showUtc(one.lastUsedAt),
        ]),
      );
      if (page.next !== null) printLine(`More: --after ${page.next}`);
    }),
  );

  withClientOptions(group.command("create").description("make a key and print it, this once"))
    .option("--label <text>", "what it is for")
    .option("--role <role>", "admin, owner, operator, viewer or worker")
    .option("--expires-in-days <n>", "when it ends (default: never)")
    .option("--expires-at <instant>", "the same as an instant, RFC 3339")
    .action(
      act(async (config, { label, role, expiresInDays, expiresAt, ...options }: CreateOptions) => {
        if (label === undefined || role === undefined) {
          const missing = label === undefined ? "--label <text>" : "--role <role>";
          throw new UsageError(`${missing}: not given, and required (--help says more)`);
        }
        const made = await clientFor(options, config).apiKeys.create({
          label,
          role,
          ...(expiresAt === undefined ? {} : { expiresAt }),
          ...(expiresInDays === undefined
            ? {}
            : { expiresInDays: readWhole("--expires-in-days", expiresInDays, 3_650) }),
        });
        if (options.json) return printJson(made);
        printKey(made);
      }),
    );

  withClientOptions(group.command("rotate <key>").description("put a new key in the place of one and print it"))
    .option("--overlap <time>", "how long the old key works on, such as 0s, 30m, 24h or 7d", "24h")
    .action(
      act(async (config, { overlap, ...options }: ClientOptions & { overlap: string }, id: string) => {
        const made = await clientFor(options, config).apiKeys.rotate(id, { overlapSeconds: readSeconds(overlap) });
        if (options.json) return printJson(made);
        printKey(made);
        printNote(`${id} works until ${showUtc(made.replaced.expiresAt)}`);
      }),
    );

  withClientOptions(group.command("revoke <key>").description("end a key: it works nowhere after 5 seconds")).action(
    act(async (config, options: ClientOptions, id: string) => {
      const revoked = await clientFor(options, config).apiKeys.revoke(id);
      if (options.json) return printJson(revoked);
      printLine(revoked.changed ? `Revoked ${id} (${revoked.apiKey.label})` : `${id} was revoked already`);
    }),
  );

  firstKeyCommand(group, act);
}

/** The key alone on standard output, for a file or a variable; what it is beside it. */
function printKey({ key, apiKey }: ApiKeyMade): void {
  printLine(key);
  printNote(`Made ${apiKey.keyId}: ${apiKey.label}, ${apiKey.role}${showEnd(apiKey)}`);
}

function showEnd({ expiresAt }: ApiKey): string {
  return expiresAt === null ? "" : `, until ${showUtc(expiresAt)}`;
}

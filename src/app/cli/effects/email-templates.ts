import type { Command } from "commander";
import type { Act } from "../act.ts";
import { printFields, printJson, printLine, printNote, printTable } from "../print.ts";
import { readNamedFile } from "../read-file.ts";
import { type ClientOptions, clientFor, withClientOptions } from "../target.ts";
import { UsageError } from "../usage.ts";
import { showUtc } from "../words.ts";

type PutOptions = ClientOptions & { subject?: string; text?: string; html?: string };

/** What emails of effects say, by name. */
export function emailTemplatesCommand(group: Command, act: Act): void {
  group.addHelpText(
    "after",
    `
Examples:
  punctual email-templates put monthly --subject "{{schedule.name}}" --text monthly.txt --html monthly.html
  punctual email-templates show monthly --json`,
  );

  withClientOptions(group.command("list").description("list email templates, by name")).action(
    act(async (config, options: ClientOptions) => {
      const { items } = await clientFor(options, config).emailTemplates.list();
      if (options.json) return printJson({ items });
      if (items.length === 0) return printNote("No email templates here.");
      printTable(
        ["NAME", "VERSION", "SUBJECT", "HTML", "CHANGED (UTC)"],
        items.map((one) => [
          one.name,
          String(one.version),
          one.subject,
          one.html === null ? "no" : "yes",
          showUtc(one.updatedAt),
        ]),
      );
    }),
  );

  withClientOptions(group.command("show <name>").description("show what one says")).action(
    act(async (config, options: ClientOptions, name: string) => {
      const found = await clientFor(options, config).emailTemplates.get(name);
      if (options.json) return printJson(found);
      const { version, subject, html, text } = found;
      printFields({
        name,
        version: String(version),
        subject,
        html: html === null ? "no" : `${html.length} characters`,
      });
      printLine("");
      printLine(text.trimEnd());
    }),
  );

  withClientOptions(
    group
      .command("put <name>")
      .usage("<name> --subject <text> --text <file> [options]")
      .description("make one, or change what it says"),
  )
    .option("--subject <text>", "the subject, with placeholders")
    .option("--text <file>", "a file with the text, @file or its name alone")
    .option("--html <file>", "the same for the HTML; without it the email is plain text")
    .action(
      act(async (config, { subject, text, html, ...options }: PutOptions, name: string) => {
        if (subject === undefined || text === undefined) {
          const missing = subject === undefined ? "--subject <text>" : "--text <file>";
          throw new UsageError(`${missing}: not given, and required (--help says more)`);
        }
        const draft = { subject, text: readNamedFile(text), html: html === undefined ? null : readNamedFile(html) };
        const made = await clientFor(options, config).emailTemplates.put(name, draft);
        if (options.json) return printJson(made);
        printLine(`${made.name} is at version ${made.version}`);
      }),
    );

  withClientOptions(
    group.command("delete <name>").description("take it away; emails say the built-in words then"),
  ).action(
    act(async (config, options: ClientOptions, name: string) => {
      const gone = await clientFor(options, config).emailTemplates.delete(name);
      if (options.json) return printJson(gone);
      printLine(`Deleted ${name}`);
    }),
  );
}

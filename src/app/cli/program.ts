import { Command, Help } from "commander";
import { readVersion } from "../version.ts";
import { createAct } from "./act.ts";
import { auditCommand } from "./audit/audit.ts";
import { calendarCommand } from "./calendar/calendar.ts";
import { calendarsCommand } from "./calendars/calendars.ts";
import { conformanceCommand } from "./conformance/conformance.ts";
import { deadLettersCommand } from "./dead-letters/dead-letters.ts";
import { doctorCommand } from "./doctor.ts";
import { effectsCommand } from "./effects/effects.ts";
import { emailTemplatesCommand } from "./effects/email-templates.ts";
import { explain } from "./explain.ts";
import { keysCommand } from "./keys/keys.ts";
import { signingKeysCommand } from "./keys/signing-keys.ts";
import { operationsCommand } from "./operations/operations.ts";
import { previewCommand } from "./preview.ts";
import { quotasCommand } from "./quotas/quotas.ts";
import { usageCommand } from "./quotas/usage.ts";
import { recoverCommand } from "./recover/command.ts";
import { roleCommands } from "./roles.ts";
import { runsCommand } from "./runs/runs.ts";
import { schedulesCommand } from "./schedules/schedules.ts";
import { secretsCommand } from "./secrets/secrets.ts";
import { settingsOf } from "./settings.ts";
import { statsCommand } from "./stats.ts";
import { tenantsCommand } from "./tenants/tenants.ts";
import { EXIT } from "./usage.ts";
import { webhooksCommand } from "./webhooks/webhooks.ts";
import { workersCommand } from "./workers/workers.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** Runs one command; resolves with its exit code, whatever happens. */
export async function runCli(args: readonly string[], env: Environment): Promise<number> {
  let exitCode: number = EXIT.ok;
  const program = createProgram(env, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(args, { from: "user" });
    return exitCode;
  } catch (error) {
    return explain(error, args.includes("--json") ? "json" : "sentence");
  }
}

function createProgram(env: Environment, keep: (exitCode: number) => void): Command {
  const act = createAct(() => settingsOf(env), keep);
  const program = new Command("punctual")
    .description("A multi-tenant job scheduler. What runs it, and what asks it.")
    .version(readVersion())
    .helpCommand(false)
    .exitOverride()
    .configureHelp({ visibleOptions: ownFirst })
    .configureOutput({ outputError: (text, write) => write(withMeant(text).replace(/^error: /, "punctual: ")) })
    .showHelpAfterError("(--help says more)")
    .addHelpText(
      "after",
      `
Examples:
  punctual up
  punctual schedules list
  punctual runs watch --schedule key:run-summary
  punctual doctor
  punctual preview "0 9 * * 1-5" --tz America/New_York

Settings come from the environment: docs/operations.md has them all.`,
    );
  roleCommands(program.commandsGroup("Run it:"), act, env.PATH ?? "");
  program.commandsGroup("Ask it:");
  schedulesCommand(
    program.command("schedules").description("list, show, create and change schedules, run one now"),
    act,
  );
  calendarsCommand(
    program.command("calendars").description("list, show, make, change and delete business calendars"),
    act,
  );
  runsCommand(program.command("runs").description("list, show and watch runs, fetch results"), act);
  effectsCommand(
    program.command("effects").description("list and show emails and webhooks of results, decide uncertain ones"),
    act,
  );
  emailTemplatesCommand(program.command("email-templates").description("what emails of results say, by name"), act);
  statsCommand(program, act);
  quotasCommand(program.command("quotas").description("show and set what the tenant may have and use"), act);
  usageCommand(program, act);
  deadLettersCommand(
    program.command("dead-letters").description("runs that were given up: list, group, show, replay or dismiss them"),
    act,
  );
  operationsCommand(program.command("operations").description("list, show, watch and cancel long work"), act);
  auditCommand(program.command("audit").description("list and export who changed what, when, and from where"), act);
  keysCommand(program.command("keys").description("list, make, rotate and revoke the tenant's API keys"), act);
  webhooksCommand(
    program.command("webhooks").description("servers that are told of what happens to runs, and what they were told"),
    act,
  );
  signingKeysCommand(
    program.command("signing-keys").description("list, make, rotate and revoke keys that sign calls to others"),
    act,
  );
  tenantsCommand(program.command("tenants").description("list, make, change, suspend and resume tenants"), act);
  workersCommand(program.command("workers").description("list the workers that are alive, your own too"), act);
  conformanceCommand(program, act, env);
  doctorCommand(program, act);
  recoverCommand(program, act);
  secretsCommand(
    program.command("secrets").description("keys that seal secrets in payloads: show, rewrap, rotate"),
    act,
  );
  program.commandsGroup("Without a system:");
  previewCommand(program, act);
  calendarCommand(program.command("calendar").description("check this program's calendar against vectors"), act);
  return program;
}

/** What every command has comes last. */
const COMMON = ["--json", "--url", "--key", "--tenant", "--help"];

function ownFirst(command: Command) {
  const options = new Help().visibleOptions(command);
  const isCommon = ({ long }: (typeof options)[number]) => COMMON.includes(long ?? "");
  return [...options.filter((one) => !isCommon(one)), ...options.filter(isCommon)];
}

/** Words for our options that differ in more letters than Commander looks for. */
const MEANT: Readonly<Record<string, string>> = {
  "--timezone": "--tz",
  "--time-zone": "--tz",
  "--zone": "--tz",
  "--expression": "--cron",
  "--labels": "--label",
};

function withMeant(text: string): string {
  return text.replace(/^error: unknown option '(--[a-z-]+)'\n$/, (sentence, option: string) => {
    const meant = MEANT[option];
    return meant === undefined ? sentence : `${sentence}(Did you mean ${meant}?)\n`;
  });
}

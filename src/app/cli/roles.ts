import type { Command } from "commander";
import { operatorError } from "../../kernel/errors.ts";
import type { RoleName } from "../run-role.ts";
import type { Act } from "./act.ts";
import { printLine } from "./print.ts";

const ROLE_WORDS = {
  api: "serve the HTTP API",
  scheduler: "turn due schedules into runs",
  relay: "tell Redis what can start",
  sweeper: "end lapsed leases, publish lost hints again",
  sender: "send the emails and webhooks of accepted results",
  worker: "run attempts",
} as const satisfies Readonly<Record<RoleName, string>>;

/** What runs the system. Loaded when asked for, so that asking the API stays quick. */
export function roleCommands(program: Command, act: Act, searchPath: string): void {
  program
    .command("up")
    .description("everything at once, as npm start does")
    .addHelpText("after", "\nBrings PostgreSQL and Redis where DATABASE_URL and REDIS_URL name none.")
    .action(
      act(async (config) => {
        const { up } = await import("../up.ts");
        await up(config, searchPath);
      }),
    );

  for (const [role, words] of Object.entries(ROLE_WORDS)) {
    program
      .command(role)
      .description(words)
      .addHelpText(
        "after",
        "\nOne role of the system, on DATABASE_URL and REDIS_URL. Start as many of each as you like.",
      )
      .action(
        act(async (config) => {
          const { runRole } = await import("../run-role.ts");
          await runRole(role as RoleName, config);
        }),
      );
  }

  program
    .command("migrate")
    .description("bring DATABASE_URL to this program's schema")
    .action(
      act(async (config) => {
        if (config.DATABASE_URL === undefined) {
          throw operatorError("config-invalid", "DATABASE_URL: is not set; it says what to migrate");
        }
        const { migrateToLatest } = await import("../../store/migrate.ts");
        const { applied } = await migrateToLatest(config.DATABASE_URL, { width: config.PUNCTUAL_PARTITIONS });
        printLine(applied.length === 0 ? "Nothing to migrate." : `Migrated: ${applied.join(", ")}`);
      }),
    );
}

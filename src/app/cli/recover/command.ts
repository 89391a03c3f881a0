import type { Command } from "commander";
import type { Act } from "../act.ts";
import type { RecoverOptions } from "./recover.ts";

export function recoverCommand(program: Command, act: Act): void {
  program
    .command("recover")
    .description("after a restore or a promotion: show what is in doubt, and make this database the authority")
    .option("--yes", "do it; without it nothing is changed")
    .option("--reason <sentence>", "what was restored, and from when; stays on record")
    .option("--nothing-lost", "every commit is in this copy: effects that are not settled were not sent elsewhere")
    .option("--anyway", "also where the database says that it is the recorded one: a copy of its files was put back")
    .option("--json", "print what is in doubt and what was done as JSON, one line")
    .addHelpText(
      "after",
      `
Stop the workers of the old server first. docs/operations.md, "After a restore or a promotion", has it step by step.
Exit codes: 0 done or nothing to do, 1 a recovery is needed and was not done.

Examples:
  punctual recover
  punctual recover --yes --reason "restored the backup of 04:00, the disk of db-1 is lost"`,
    )
    .action(
      act(async (config, options: RecoverOptions) => {
        const { recover } = await import("./recover.ts");
        return recover(config, options);
      }),
    );
}

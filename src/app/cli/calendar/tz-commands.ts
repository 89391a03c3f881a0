import type { Command } from "commander";
import type { Act } from "../act.ts";

export type TzdbOptions = { json?: boolean };
export type ShadowOptions = { to?: string; zoneinfo?: string; write?: string; against?: string; json?: boolean };
export type AdoptOptions = { yes?: boolean; json?: boolean };

/** Which tz database schedules go by, what another would move, and the switch. Loaded when asked for. */
export function tzCommands(group: Command, act: Act): void {
  group
    .command("tzdb")
    .description("show which tz database schedules go by, and which others could be adopted")
    .option("--json", "print it as JSON, one line")
    .addHelpText(
      "after",
      `
Looks at DATABASE_URL, or at the running system of this checkout. Every process goes by the adopted version, whatever its
release brought along; the metric punctual_tz_info tells it of each. The tz data of Node and of PostgreSQL is never used.`,
    )
    .action(
      act(async (config, options: TzdbOptions) => {
        const { showTzdb } = await import("./tzdb.ts");
        await showTzdb(config, options);
      }),
    );

  group
    .command("shadow")
    .description("list what another tz database, or another release, would move in the next month")
    .option("--to <version>", "a version that is a candidate (default: what this program brings)")
    .option("--zoneinfo <directory>", "a zoneinfo directory with its tzdata.zi")
    .option("--write <file>", "write what this release computes, for another one to compare")
    .option("--against <file>", "compare what another release has written with what this one computes")
    .option("--json", "print the outcome as JSON, one line")
    .addHelpText(
      "after",
      `
Computes every distinct rule of active and paused schedules twice and changes nothing. Examples:
  punctual calendar shadow --to 2026f
  punctual calendar shadow --write before.jsonl      with the release that runs
  punctual calendar shadow --against before.jsonl    with the release that is to come
Exit codes: 0 nothing moves, 1 something does.`,
    )
    .action(
      act(async (config, options: ShadowOptions) => {
        const { shadow } = await import("./shadow.ts");
        return shadow(config, options);
      }),
    );

  group
    .command("adopt <version>")
    .description("have all schedules go by another tz database")
    .option("--yes", "do it even if runs move")
    .option("--json", "print the outcome as JSON, one line")
    .addHelpText(
      "after",
      `
Shows what would move in the next month, as \`punctual calendar shadow\` does, and asks before it does it; without a
terminal it needs --yes. Running processes notice within seconds, and nothing has to be restarted.`,
    )
    .action(
      act(async (config, options: AdoptOptions, version: string) => {
        const { adopt } = await import("./adopt.ts");
        return adopt(config, options, version);
      }),
    );
}

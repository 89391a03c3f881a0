import type { Command } from "commander";
import type { Act } from "../act.ts";
import { checkCommand } from "./check.ts";
import { tzCommands } from "./tz-commands.ts";

/** What is asked of the calendar itself, and not of a schedule. */
export function calendarCommand(group: Command, act: Act): void {
  checkCommand(group, act);
  tzCommands(group, act);
}

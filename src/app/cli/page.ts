import type { Command } from "commander";
import { UsageError } from "./usage.ts";

const MOST = 200;

export function pageOptions(command: Command): Command {
  return command
    .option("--limit <n>", `rows, 1 to ${MOST}`, "20")
    .option("--after <cursor>", "the next page: what the page before named");
}

export function readLimit(text: string): number {
  const limit = Number(text);
  if (/^\d{1,3}$/.test(text) && limit >= 1 && limit <= MOST) return limit;
  throw new UsageError(`--limit: found "${text}"; allowed: a whole number from 1 to ${MOST}`);
}

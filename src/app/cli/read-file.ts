import { readFileSync } from "node:fs";
import { messageOf } from "../../kernel/errors.ts";
import { UsageError } from "./usage.ts";

/** The text of a file that was named where only a file can be, with the @ of other options or without it. */
export function readNamedFile(name: string): string {
  return readTextFile(name.replace(/^@/, ""));
}

/** The text of a file that was named; a refusal says what is wrong with the place, not with its content. */
export function readTextFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const why =
      (error as { code?: string }).code === "ENOENT" ? "no such file" : `cannot be read (${messageOf(error)})`;
    throw new UsageError(`${path}: ${why}`);
  }
}

import { messageOf } from "../../../kernel/errors.ts";
import { readTextFile } from "../read-file.ts";
import { UsageError } from "../usage.ts";

/** The text of a JSON object, given as it is or as @file. It is checked, and answered as it was written. */
export function readJsonObject(option: string, text: string, example: string): string {
  const json = text.startsWith("@") ? readTextFile(text.slice(1)) : text;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return json;
  } catch (error) {
    throw new UsageError(`${option}: is not JSON (${messageOf(error)}); allowed: an object such as '${example}'`);
  }
  throw new UsageError(`${option}: is no JSON object; allowed: an object such as '${example}'`);
}

/** From a cron expression's text to its fields. */

import { refuse } from "../fault.ts";
import { type CronField, type CronFields, type DayToken, FIELDS, type FieldName, type FieldShape } from "./fields.ts";
import { readItem } from "./item.ts";

const LONGEST_EXPRESSION = 200;

const MACROS: Readonly<Record<string, string>> = {
  "@YEARLY": "0 0 1 1 *",
  "@ANNUALLY": "0 0 1 1 *",
  "@MONTHLY": "0 0 1 * *",
  "@WEEKLY": "0 0 * * 0",
  "@DAILY": "0 0 * * *",
  "@MIDNIGHT": "0 0 * * *",
  "@HOURLY": "0 * * * *",
};

/** Macros of other programs that mean a calendar rule we can write. */
const FOREIGN_MACROS: Readonly<Record<string, string>> = {
  "@WEEKDAYS": "0 0 * * 1-5",
  "@WEEKENDS": "0 0 * * 0,6",
  "@MINUTELY": "* * * * *",
  "@EVERY_MINUTE": "* * * * *",
  "@SECONDLY": "* * * * * *",
};

const ALLOWED_FIVE = "five fields (minute hour day-of-month month day-of-week) or a macro such as @daily";
const ALLOWED_SIX = "six fields (second minute hour day-of-month month day-of-week) or a macro such as @daily";

/** Reads an expression of five fields, or of six where `wantsSeconds`. Throws `FaultyRule`. */
export function readExpression(expression: string, wantsSeconds: boolean): CronFields {
  const allowed = wantsSeconds ? ALLOWED_SIX : ALLOWED_FIVE;
  const found = expression;
  if (expression.length > LONGEST_EXPRESSION) {
    const message = `The expression has ${expression.length} characters; the longest accepted has ${LONGEST_EXPRESSION}.`;
    refuse({ field: "expression", found, message, allowed });
  }
  const text = expression.replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, "").toUpperCase();
  if (text === "") refuse({ field: "expression", found, message: "The expression is empty.", allowed });
  if (text.startsWith("@")) return readFields(expandMacro(text, found), false);
  const parts = text.split(/[ \t]+/);
  if (parts.length !== (wantsSeconds ? 6 : 5)) refuseCount(parts, found, wantsSeconds, allowed);
  return readFields(parts, wantsSeconds);
}

function expandMacro(text: string, found: string): readonly string[] {
  const macro = Object.hasOwn(MACROS, text) ? MACROS[text] : undefined;
  if (macro !== undefined) return macro.split(" ");
  const foreign = Object.hasOwn(FOREIGN_MACROS, text) ? FOREIGN_MACROS[text] : undefined;
  return refuse({
    field: "expression",
    found,
    message: "There is no such macro.",
    allowed: Object.keys(MACROS).join(" ").toLowerCase(),
    ...(foreign === undefined ? {} : { suggestion: foreign }),
  });
}

function refuseCount(parts: readonly string[], found: string, wantsSeconds: boolean, allowed: string): never {
  const message = `The expression has ${parts.length} field${parts.length === 1 ? "" : "s"} instead of ${wantsSeconds ? 6 : 5}.`;
  if (/^(CRON_)?TZ=/.test(parts[0] ?? "")) {
    refuse({ field: "expression", found, message: "The zone has a field of its own: write it in `zone`.", allowed });
  }
  if (parts.length === 6 && /^\d{4}$/.test(parts[5]!)) {
    refuse({ field: "expression", found, message: `${message} There is no field for years.`, allowed });
  }
  const suggestion =
    parts.length === 6
      ? "set `seconds: true` if the first field means seconds"
      : wantsSeconds && parts.length === 5
        ? `0 ${found.trim()}`
        : undefined;
  refuse({ field: "expression", found, message, allowed, ...(suggestion === undefined ? {} : { suggestion }) });
}

function readFields(parts: readonly string[], hasSeconds: boolean): CronFields {
  const texts = hasSeconds ? parts : ["0", ...parts];
  const fields = FIELDS.map((shape, k) => [shape.name, readField(shape, texts[k]!)] as const);
  return Object.fromEntries(fields) as Record<FieldName, CronField>;
}

function readField(shape: FieldShape, text: string): CronField {
  const values = new Set<number>();
  const tokens: DayToken[] = [];
  for (const item of text.split(",")) {
    const read = readItem(shape, item);
    if ("token" in read) tokens.push(read.token);
    else for (const value of read.values) values.add(shape.name === "day-of-week" ? value % 7 : value);
  }
  return { text, values: [...values].sort((a, b) => a - b), tokens, isStarred: /^[*?]/.test(text) };
}

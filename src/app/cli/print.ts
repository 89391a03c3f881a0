import Table from "cli-table3";

/** Everything commands write goes through here: results to standard output, the rest to standard error. */

export function printLine(line: string): void {
  console.log(line);
}

/** One line of JSON, as the API gave it. */
export function printJson(value: unknown): void {
  console.log(JSON.stringify(value));
}

export function printNote(line: string): void {
  console.error(line);
}

const NO_BORDERS = {
  top: "",
  "top-mid": "",
  "top-left": "",
  "top-right": "",
  bottom: "",
  "bottom-mid": "",
  "bottom-left": "",
  "bottom-right": "",
  left: "",
  "left-mid": "",
  mid: "",
  "mid-mid": "",
  right: "",
  "right-mid": "",
  middle: "  ",
};
const PLAIN = { head: [], border: [], "padding-left": 0, "padding-right": 0, compact: true };

/** Columns of a list, for people. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const table = new Table({ head: [...head], chars: NO_BORDERS, style: PLAIN });
  for (const row of rows) table.push(row.map(visible));
  printTrimmed(table.toString());
}

/** Names and values of one thing; lines without a value are left out. */
export function printFields(fields: Readonly<Record<string, string | null | undefined>>): void {
  const table = new Table({ chars: NO_BORDERS, style: PLAIN });
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined && value !== "") table.push([name, visible(value)]);
  }
  printTrimmed(table.toString());
}

function printTrimmed(text: string): void {
  console.log(text.replaceAll(/ +$/gm, ""));
}

/** Names come from tenants, and a terminal obeys what it prints: control characters are shown, not sent. */
export function visible(text: string): string {
  return text.replaceAll(
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

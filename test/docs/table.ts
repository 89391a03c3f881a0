import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/** The rows (cells trimmed) of the Markdown table whose first header cell is `header`. Throws when there is none. */
export function tableIn(path: string, header: string): string[][] {
  const lines = readFileSync(`${root}/${path}`, "utf8").split("\n");
  const start = lines.findIndex((line) => line.startsWith(`| ${header} |`));
  if (start === -1) throw new Error(`${path} has no table that begins with | ${header} |`);
  const after = lines.slice(start + 2);
  const end = after.findIndex((line) => !line.startsWith("|"));
  return after.slice(0, end === -1 ? undefined : end).map((line) =>
    line
      .replace(/^\|/, "")
      .replace(/\|\s*$/, "")
      .split("|")
      .map((cell) => cell.trim()),
  );
}

/** What stands between backticks in a cell, in order. */
export function codeIn(cell: string | undefined): string[] {
  return [...(cell ?? "").matchAll(/`([^`]+)`/g)].map(([, code]) => code ?? "");
}

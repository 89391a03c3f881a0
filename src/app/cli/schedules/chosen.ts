import { showDuration } from "../words.ts";

/** Fields of a definition as people read them: what differs from what nobody has to say. */

export type Fields = Readonly<Record<string, unknown>>;

export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function differing(value: Fields, usual: Fields): Fields {
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, one]) => {
      const other = usual[name];
      if (JSON.stringify(one) === JSON.stringify(other)) return [];
      return [[name, isFields(one) && isFields(other) ? differing(one, other) : one]];
    }),
  );
}

/** Milliseconds are said in words as well. */
export function showValue(name: string, value: unknown): string {
  if (value === undefined || (isFields(value) && Object.keys(value).length === 0)) return "";
  if (typeof value === "number" && name.endsWith("Ms")) return `${value} (${showDuration(value)})`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

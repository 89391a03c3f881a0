import type { Instant } from "../kernel/clock.ts";

/**
 * How values cross the border to PostgreSQL.
 *
 * Arrays go as one text literal each (`unnest($1::uuid[])`): measured, this is cheaper than the driver's own array
 * building, and a statement keeps the same few parameters whatever the batch size.
 */

/** An instant as PostgreSQL reads it; keeps microseconds. */
export function instantText(at: Instant): string {
  const whole = Math.floor(at);
  const micros = Math.round((at - whole) * 1000);
  const iso = new Date(whole).toISOString();
  return micros === 0 ? iso : `${iso.slice(0, -1)}${String(micros).padStart(3, "0")}Z`;
}

type Nullable<T> = T | null | undefined;

/** For items that need no quoting: ids, numbers, booleans, words of ours. */
export function plainArray(items: readonly Nullable<string | number | bigint | boolean>[]): string {
  let text = "{";
  for (let i = 0; i < items.length; i++) {
    const item = items[i];
    if (i > 0) text += ",";
    text += item === null || item === undefined ? "NULL" : String(item);
  }
  return `${text}}`;
}

export function instantArray(items: readonly Nullable<Instant>[]): string {
  return plainArray(items.map((at) => (at === null || at === undefined ? null : instantText(at))));
}

/** For text that anybody may have written. */
export function textArray(items: readonly Nullable<string>[]): string {
  return `{${items
    .map((item) =>
      item === null || item === undefined ? "NULL" : `"${item.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`,
    )
    .join(",")}}`;
}

export function jsonArray(items: readonly unknown[]): string {
  return textArray(items.map((item) => (item === null || item === undefined ? null : JSON.stringify(item))));
}

/** `2026-11-29 18:50:35.123456+00` → epoch ms with a microsecond fraction. */
export function parseInstant(text: string): Instant {
  const seconds = Date.UTC(
    Number(text.slice(0, 4)),
    Number(text.slice(5, 7)) - 1,
    Number(text.slice(8, 10)),
    Number(text.slice(11, 13)),
    Number(text.slice(14, 16)),
    Number(text.slice(17, 19)),
  );
  let at = 19;
  let micros = 0;
  if (text[at] === ".") {
    const end = text.indexOf(text.includes("+", at) ? "+" : "-", at);
    micros = Number(text.slice(at + 1, end).padEnd(6, "0"));
    at = end;
  }
  const sign = text[at] === "-" ? -1 : 1;
  const hours = Number(text.slice(at + 1, at + 3));
  const minutes = text[at + 3] === ":" ? Number(text.slice(at + 4, at + 6)) : 0;
  return seconds - sign * (hours * 60 + minutes) * 60_000 + micros / 1000;
}

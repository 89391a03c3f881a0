/** Numbers, lists and lengths of time in plain English. */
import { dateOf } from "./civil.ts";

/** The even distance between values all round the cycle, if there is one. */
export function spacing(values: readonly number[], size: number): number | undefined {
  const step = size / values.length;
  return Number.isInteger(step) && step < size && values.every((value, k) => value === k * step) ? step : undefined;
}

/** Three and more in a row become "a to b", five and more at one distance "a, b, …, z". */
export function spans(values: readonly number[], name: (value: number) => string): string {
  const step = values.length < 5 ? 1 : values[1]! - values[0]!;
  if (step > 1 && values.every((value, k) => k === 0 || value - values[k - 1]! === step)) {
    return `${name(values[0]!)}, ${name(values[1]!)}, …, ${name(values.at(-1)!)}`;
  }
  const parts: string[] = [];
  for (let start = 0; start < values.length; ) {
    let end = start;
    while (end + 1 < values.length && follows(values[end]!, values[end + 1]!)) end += 1;
    if (end - start >= 2) parts.push(`${name(values[start]!)} to ${name(values[end]!)}`);
    else for (let k = start; k <= end; k += 1) parts.push(name(values[k]!));
    start = end + 1;
  }
  return list(parts);
}

function follows(a: number, b: number): boolean {
  return b === a + 1 || (a === 6 && b === 0);
}

export function list(parts: readonly string[]): string {
  return parts.length < 2 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)!}`;
}

/** In the largest unit that divides it. */
export function duration(ms: number): string {
  for (const [unit, size] of [
    ["day", 86_400_000] as const,
    ["hour", 3_600_000] as const,
    ["minute", 60_000] as const,
  ]) {
    if (ms >= size && ms % size === 0) return plural(ms / size, unit);
  }
  return ms % 1000 === 0 ? plural(ms / 1000, "second") : plural(ms, "millisecond");
}

export function plural(n: number, unit: string): string {
  return `${n} ${unit}${n === 1 ? "" : "s"}`;
}

export function two(n: number): string {
  return String(n).padStart(2, "0");
}

/** Such as 2026-12-25; `day` is whole days since 1970-01-01. */
export function date(day: number): string {
  const { year, month, day: dayOfMonth } = dateOf(day);
  return `${String(year).padStart(4, "0")}-${two(month)}-${two(dayOfMonth)}`;
}

/** RFC 3339 in UTC, without empty milliseconds. */
export function instant(at: number): string {
  return new Date(at).toISOString().replace(/\.000Z$/, "Z");
}

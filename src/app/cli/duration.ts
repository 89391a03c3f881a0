import { UsageError } from "./usage.ts";

const UNIT_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
type Unit = keyof typeof UNIT_MS;

/** `15m`: a whole number and its unit. */
export function readDuration(option: string, text: string): { n: number; unit: Unit } {
  const [, n, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  if (n !== undefined) return { n: Number(n), unit: unit as Unit };
  throw new UsageError(`${option}: found "${text}"; allowed: a whole number and s, m, h or d, such as 15m`);
}

export function durationMs(option: string, text: string): number {
  const { n, unit } = readDuration(option, text);
  return n * UNIT_MS[unit];
}

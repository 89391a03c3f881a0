import type { Instant } from "../../../kernel/clock.ts";
import type { Period } from "../period.ts";

/** Times as the reader's zone writes them. */
export type ZoneFormat = {
  zone: string;
  dateTime(at: Instant): string;
  time(at: Instant): string;
  day(at: Instant): string;
  period(period: Period): string;
  /** Local time minus UTC at `at`, in ms. */
  offsetMs(at: Instant): number;
};

/** @throws RangeError for a zone nobody knows. */
export function createZoneFormat(zone: string): ZoneFormat {
  const of = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-GB", { ...options, timeZone: zone, hourCycle: "h23" });
  const day = of({ day: "numeric", month: "short" });
  const time = of({ hour: "2-digit", minute: "2-digit" });
  const dateTime = of({
    day: "numeric",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
  });
  const minute = of({ day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
  const offset = of({ timeZoneName: "longOffset" });
  return {
    zone,
    dateTime: (at) => dateTime.format(at),
    time: (at) => time.format(at),
    day: (at) => day.format(at),
    period: ({ fromAt, toAt }) => minute.formatRange(fromAt, toAt),
    offsetMs(at) {
      const text = offset.formatToParts(at).find((part) => part.type === "timeZoneName")?.value ?? "";
      const match = /([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(text);
      if (match === null) return 0;
      const seconds = Number(match[2]) * 3600 + Number(match[3]) * 60 + Number(match[4] ?? 0);
      return (match[1] === "-" ? -1 : 1) * seconds * 1000;
    },
  };
}

export function isKnownZone(zone: string): boolean {
  try {
    createZoneFormat(zone);
    return true;
  } catch {
    return false;
  }
}

/** `12 ms`, `1.4 s`, `2 min 5 s`, `3 h 20 min`, `4 d 2 h`; a dash for nothing. */
export function formatMs(ms: number | undefined): string {
  if (ms === undefined) return "–";
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1).replace(".0", "")} s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return pair(seconds, 60, "min", "s");
  if (seconds < 86_400) return pair(Math.round(seconds / 60), 60, "h", "min");
  return pair(Math.round(seconds / 3600), 24, "d", "h");
}

function pair(amount: number, size: number, large: string, small: string): string {
  const rest = amount % size;
  return rest === 0 ? `${amount / size} ${large}` : `${Math.floor(amount / size)} ${large} ${rest} ${small}`;
}

const counts = new Intl.NumberFormat("en-GB");
export const formatCount = (count: number) => counts.format(count);

/** A share in percent that never rounds to a false 100 % or 0 %. */
export function formatShare(part: number, whole: number): string {
  if (whole === 0) return "–";
  const percent = (part / whole) * 100;
  if (part === whole || part === 0) return `${percent} %`;
  return `${Math.min(99.9, Math.max(0.1, percent)).toFixed(1)} %`;
}

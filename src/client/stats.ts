/** What happened to runs, by the minute, hour or day. Instants are RFC 3339 in UTC. */

export type StatsPeriod = { from?: string; to?: string; class?: string; resolution?: string };

export type RunCounts = {
  started: number;
  succeeded: number;
  failed: number;
  canceled: number;
  skipped: number;
  retried: number;
  /** Of `started`, those that something of their own held: they are in no bucket of `lateness`. */
  heldBack: number;
  lateness: { counts: number[]; p50Ms: number | null; p99Ms: number | null };
};

export type Stats = {
  from: string;
  to: string;
  resolution: "minute" | "hour" | "day";
  latenessBoundsMs: number[];
  items: (RunCounts & { at: string; class: string })[];
  total: RunCounts;
  /** What happened up to here is counted. */
  asOf: string;
};

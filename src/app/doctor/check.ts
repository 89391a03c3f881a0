import type { HintRedis } from "../../hints/connection.ts";
import type { Instant } from "../../kernel/clock.ts";
import type { ObjectStore } from "../../objects/port.ts";
import type { Database, Queryable } from "../../store/database.ts";
import type { Config } from "../config.ts";

/** The system under examination. */
export type Patient = {
  config: Config;
  databaseUrl: string;
  db: Database;
  /** For questions of unknown cost: read only, and given up after 5 s. */
  careful: Queryable;
  /** Undefined where no Redis is configured. */
  redis: HintRedis | undefined;
  objects: ObjectStore;
  /** The database's clock, epoch ms. */
  now(): Promise<Instant>;
};

/** What is wrong, what comes of it, and what puts it right: a sentence each. */
export type Finding = {
  status: "finding";
  sentence: string;
  consequence: string;
  todo: string;
  rows?: readonly unknown[];
};

/** `finding`: something is wrong, and somebody can do something about it. `skipped`: there is nothing to look at here. */
export type Verdict = { status: "ok" | "skipped"; sentence: string } | Finding;

/** One look at the patient. It changes nothing. What it throws means that it could not look. `id` is what `--only` names. */
export type Check = { id: string; name: string; examine(patient: Patient): Promise<Verdict> };

export const ok = (sentence: string): Verdict => ({ status: "ok", sentence });
export const skipped = (sentence: string): Verdict => ({ status: "skipped", sentence });
export function finding(sentence: string, consequence: string, todo: string, rows?: readonly unknown[]): Verdict {
  return { status: "finding", sentence, consequence, todo, ...(rows === undefined ? {} : { rows }) };
}

/** `90 s`, `12 min`, `3 h`: how long something has been wrong. */
export function showAge(ms: number): string {
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}
